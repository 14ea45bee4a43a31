"""Speed: namespaces of up to a million memories, what Trivet takes over HTTP, and peers on the same data."""
