"""PostgreSQL arrays: formatting numbers and texts as literals, and reading aggregated columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def array_text(numbers: Iterable[object]) -> str:
    """Format numbers, booleans or timestamps as an array literal: many times faster than adapting a list.

    >>> array_text([1, -2]), array_text([0.5, None]), array_text([True]), array_text([])
    ('{1,-2}', '{0.5,NULL}', '{True}', '{}')
    """
    return "{" + ",".join(["NULL" if each is None else str(each) for each in numbers]) + "}"


def text_array(texts: Sequence[str | None]) -> str:
    r"""Format texts as an array literal: many times faster than adapting a list.

    >>> text_array(["Ann", ""]), text_array([]), text_array([None, "Bo"]), print(text_array(['6" \\ 8"']))
    {"6\" \\ 8\""}
    ('{"Ann",""}', '{}', '{NULL,"Bo"}', None)
    """
    if not texts:
        return "{}"
    known = [text for text in texts if text is not None]
    if len(known) < len(texts):
        return "{" + ",".join(["NULL" if text is None else text_array([text])[1:-1] for text in texts]) + "}"
    together = '","'.join(known)
    if "\\" in together or together.count('"') > 2 * (len(known) - 1):
        together = '","'.join(text.replace("\\", "\\\\").replace('"', '\\"') for text in known)
    return '{"' + together + '"}'


def integers(sent: bytes | None, dtype: str = ">i4") -> NDArray[np.int64]:
    """Decode concatenated integers in PostgreSQL's binary format; empty for null."""
    return np.frombuffer(sent or b"", dtype).astype(np.int64)


def transposed(arrays: Sequence[list[Any] | None]) -> list[tuple[Any, ...]]:
    """Rows from columns, which are all None if there are no rows."""
    return list(zip(*(array or () for array in arrays), strict=True))
