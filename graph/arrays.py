"""Numbers and texts as Postgres arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def array_text(numbers: Iterable[float]) -> str:
    """Numbers or truth values as the text of an array: many times faster than adapting a list.

    >>> array_text([1, -2]), array_text([0.5]), array_text([True]), array_text([])
    ('{1,-2}', '{0.5}', '{True}', '{}')
    """
    return "{" + ",".join(map(str, numbers)) + "}"


def text_array(texts: Sequence[str]) -> str:
    r"""Texts as the text of an array: many times faster than adapting a list.

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
