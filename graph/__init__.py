"""The entity graph: extraction, linking, store and bounded traversal."""
