"""`heliograph demo`."""
def add_parser(commands): pass
