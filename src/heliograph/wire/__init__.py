"""Kafka's bytes, without a connection: batches, the two hot messages, error codes, MirrorMaker 2's records."""
