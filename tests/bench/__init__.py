"""The benchmark: Heliograph and the real MirrorMaker 2, one after the other, on the same brokers and data (`make bench`)."""
