"""How BM25 reads a text."""

from __future__ import annotations


def terms(text: str, language: str = "auto") -> list[str]:
    """The terms that BM25 compares: words without stop words, stemmed, and identifiers whole and in parts.

    Scripts without spaces have pairs of characters. BM25 also stores single Han characters, which are left out here.

    A namespace reads its memories and its queries in the same way, as its setting `language` says.

    Args:
        text: of a memory or a query.
        language: `auto`, `simple`, or a name or code of a language.

    Returns:
        The terms in the order of the text, with repetitions.

    Raises:
        InvalidInput: the language is unknown.
    """
    from retrieval.text.analysis import analyze  # it loads NumPy, which a client over HTTP does not need

    return analyze(text, language)
