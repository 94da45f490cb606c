"""What tests share: source data of every kind, the mirror as a process, processes and waiting. No test stands here."""
