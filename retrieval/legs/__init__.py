"""The three retrievers and their common interface."""
