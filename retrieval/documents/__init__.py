"""Documents: their text is extracted, split along its structure into chunks, and stored as memories."""
