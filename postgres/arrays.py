"""Formats numbers and texts as PostgreSQL arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def array_text(numbers: Iterable[float]) -> str:
    """Format numbers or booleans as an array literal: many times faster than adapting a list.

    >>> array_text([1, -2]), array_text([0.5]), array_text([True]), array_text([])
    ('{1,-2}', '{0.5}', '{True}', '{}')
    """
    return "{" + ",".join(map(str, numbers)) + "}"


def text_array(texts: Sequence[str]) -> str:
    r"""Format texts as an array literal: many times faster than adapting a list.

    >>> text_array(["Ann", ""]), text_array([]), print(text_array(['6" \\ 8"']))
    {"6\" \\ 8\""}
    ('{"Ann",""}', '{}', None)
    """
    if not texts:
        return "{}"
    together = '","'.join(texts)
    if "\\" in together or together.count('"') > 2 * (len(texts) - 1):
        together = '","'.join(text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return '{"' + together + '"}'
