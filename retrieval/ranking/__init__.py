"""Ranking: noise cut, fusion, weights, rescoring, deduplication and diversity. No I/O."""
