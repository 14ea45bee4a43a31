"""Identifiers: ticket numbers, versions, names in code, addresses, tags and handles."""

from __future__ import annotations

import re

from graph.tokenizer import MAX_WORD_CHARS, Token

_CODE = re.compile(
    r"[A-Z][A-Z0-9]{0,9}-\d{1,8}"  # ABC-123
    r"|[^\W_]+(?:_[^\W_]+)+"  # snake_case
    r"|_+[^\W_]+(?:_+[^\W_]+)*_*"  # __init__
    r"|[a-z]+[0-9]*(?:[A-Z][a-z0-9]+)+"  # camelCase
    r"|(?!Ma?c[A-Z])(?:[A-Z][a-z0-9]+){2,}"  # PascalCase, but not McDonald
    r"|(?=[A-Za-z0-9-]*\d)(?=[A-Za-z0-9-]*[A-Za-z])[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*"  # B2B, 4K, A380, x86
)
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|s|am|pm|k|m|min|h|hr|hrs|kg|km|lbs?|ft|x)", re.IGNORECASE)
_VERSION = re.compile(r"v\d+(?:\.\d+)*|\d+(?:\.\d+){2,}")


def identifier(token: Token) -> str | None:
    """The identifier that a token contains, or None.

    >>> from graph.tokenizer import tokenize
    >>> [i for t in tokenize("see ABC-123, v1.2.3 and snake_case at 10am") if (i := identifier(t))]
    ['ABC-123', 'v1.2.3', 'snake_case']
    """
    if token.kind == "tag":
        return token.text[1:]
    if token.kind == "email":
        return token.text
    if token.kind == "url":
        return token.text.rstrip(".,;:!?)]}")[:200]
    if token.kind == "number":
        return token.text if _VERSION.fullmatch(token.text) else None
    if token.kind == "word" and 2 <= len(token.text) <= MAX_WORD_CHARS:
        return token.text if _CODE.fullmatch(token.text) and not _ORDINAL.fullmatch(token.text) else None
    return None
