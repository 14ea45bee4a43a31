"""Ingestion: memories are checked, analysed and embedded, then written in one transaction over all legs."""
