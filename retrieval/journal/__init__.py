"""Records of searches: the query log, feedback, and agreement of shadow rankings with live ones."""
