"""Fitting profiles: the legs' results for labelled queries, replayed with other weights, k and fan-out."""
