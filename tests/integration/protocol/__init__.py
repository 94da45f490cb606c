"""The protocol of facts/exactly-once.md, rule by rule, on real brokers and without Spark."""
