"""Runs an ONNX text encoder on batches of word pieces."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from native.malloc import trim_heap

TEXTS_PER_BATCH = 6
"""Most texts in one run.

One core encodes 242 texts of 30 words a second one by one, 244 in batches of 2, 237 of 8, 222 of 16, 205 of 24, as the
caches fill up.
"""

PIECES_PER_BATCH = 384
"""Most word pieces in one run, padding included, unless one text has more.

Running six texts of 256 pieces at once takes 75 MB and 1.17 times the processor time per piece of a single such text,
which takes 15 MB.
"""

PIECES_PER_RUN = 3
"""Fixed cost of a run, in word pieces: 0.25 ms, against 0.09 ms per piece."""


_SHRINK_ARENA = ort.RunOptions()
_SHRINK_ARENA.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")


Inputs = dict[str, NDArray[np.int64]]
"""Word piece ids and attention mask of a batch, shape (texts, longest) each."""


def batch_inputs(texts: Sequence[Sequence[int]]) -> Inputs:
    """Lay out word piece ids as `input_ids` and `attention_mask`, padded to the longest text."""
    longest = max(len(pieces) for pieces in texts)
    input_ids = np.zeros((len(texts), longest), dtype=np.int64)
    attention_mask = np.zeros_like(input_ids)
    for row, pieces in enumerate(texts):
        input_ids[row, : len(pieces)] = pieces
        attention_mask[row, : len(pieces)] = 1
    return {"input_ids": input_ids, "attention_mask": attention_mask}


def encode_batch(session: ort.InferenceSession, texts: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """Encode word piece ids in one run; unit rows of shape (len(texts), dimensions)."""
    return encode(session, batch_inputs(texts))


def encode(session: ort.InferenceSession, inputs: Inputs) -> NDArray[np.float32]:
    """Run the model; unit rows of shape (texts, dimensions)."""
    vectors: NDArray[np.float32]
    (vectors,) = session.run(["embedding"], inputs)
    return vectors


def shrink_arena(session: ort.InferenceSession) -> None:
    """Return the memory of a session's arena to the system: 15 MB for each thread that ran a long text.

    Shrinking after every run would take a tenth of its time. This costs a run of one word piece.
    """
    session.run(["embedding"], batch_inputs([[0]]), _SHRINK_ARENA)
    trim_heap()


def batches_by_length(texts: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Group row numbers into batches of similar length, shortest texts first.

    Among all ways to cut the texts, sorted by length, into batches of at most `TEXTS_PER_BATCH` and `PIECES_PER_BATCH`,
    this one minimises the padding plus `PIECES_PER_RUN` for each batch.

    >>> list(batches_by_length([[7, 7, 7], [7], [7, 7]]))
    [[1, 2, 0]]
    >>> list(batches_by_length([[7] * 90, [7], [7, 7]]))
    [[1, 2], [0]]
    """
    shortest_first = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    lengths = [len(texts[row]) for row in shortest_first]
    costs, starts = [0], [0]  # for the n shortest texts: cost in word pieces, and start of the last batch
    for stop, longest in enumerate(lengths, start=1):
        most = min(stop, TEXTS_PER_BATCH, max(1, PIECES_PER_BATCH // longest))
        cost, start = min((costs[start] + (stop - start) * longest, start) for start in range(stop - most, stop))
        costs.append(cost + PIECES_PER_RUN)
        starts.append(start)
    cuts = [len(texts)]
    while cuts[-1]:
        cuts.append(starts[cuts[-1]])
    for stop, start in reversed(list(pairwise(cuts))):
        yield shortest_first[start:stop]
