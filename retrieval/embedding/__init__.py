"""Texts to unit vectors: one Protocol, the bundled model and a cache for queries."""
