"""Fitting profiles: what the legs found for labelled queries, replayed under other weights, k and fan-out."""
