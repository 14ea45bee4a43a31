"""What a server process knows of a namespace without asking: exact, and brought up to date by every query."""
