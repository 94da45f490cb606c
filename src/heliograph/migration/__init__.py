"""From and to other mirrors: what a person does once."""
