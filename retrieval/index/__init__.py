"""The in-memory index of a namespace: exact, and brought up to date by every query."""
