"""What a person asks for once: for now the record-by-record comparison of a copy with its source."""
