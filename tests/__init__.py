"""The suite: unit and property (no network), integration and chaos (real brokers, a real Spark), bench."""
