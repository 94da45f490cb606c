"""Real Kafka on this computer: brokers, MirrorMaker 2 and sample traffic, for the demo, the drills and the tests."""
