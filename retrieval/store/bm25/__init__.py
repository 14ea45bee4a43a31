"""BM25 in PostgreSQL: a tail of new memories, packed segments, and the compaction from one to the other."""
