"""Text embeddings: the embedder protocol, the bundled model and a cache for queries."""
