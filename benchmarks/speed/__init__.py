"""Speed: Trivet over HTTP on namespaces of up to a million memories, and peers on the same data."""
