"""The entity graph of a namespace: pages, neighbours, paths, communities; aliases and merges by hand."""
