"""The three retrievers behind one seam."""
