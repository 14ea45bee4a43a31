"""Splits a text into tokens, in one pass of one regular expression with bounded backtracking.

Identifiers among them: ticket numbers, versions, names in code, addresses, tags and handles.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from graph.names import MARKS

MAX_WORD_CHARS = 64
"""Longer words are hashes, base64 or unsegmented text, not names."""


class Token(NamedTuple):
    """A piece of text: `kind` is url, email, tag, initials, date, number, elision, word, newline or mark."""

    kind: str
    text: str
    start: int
    end: int


_TOKEN = re.compile(
    rf"""(?![ ])(?:
      [a-z]+(?=[\s,;!?])  # a word: the most common case, matched first
    | (?P<url>      (?:https?://|www\.)[^\s<>"'\u3000-\u303f]+ )
    | (?P<email>    (?<![\w.+-])[\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,4}} )
    | (?P<tag>      (?<!\w)[@#][^\W\d][\w{MARKS}]{{1,63}} )
    | (?P<initials> (?<!\w)(?:[A-Z]\.){{1,6}}(?![^\W_]) )
    | (?P<date>     [12]\d{{3}}-\d\d(?:-\d\d)?(?![\d-]) )
    | (?P<number>   v?\d+(?:[.,]\d+)*(?![\w{MARKS}]) )
    | (?P<elision>  (?<![\w'\u2019])(?:[cdjlmnst]|qu|dell|all|nell|sull|dall)['\u2019](?=[A-Z\xc0-\xde]) )  # d'Hélène
    | (?P<word>     [\w{MARKS}]+(?:['\u2019&-][\w{MARKS}]+)*(?:\+\+|\#(?!\w))? )
    | (?P<newline>  \n )
    | (?P<mark>     [^\w\s] )
    )""",
    re.VERBOSE,
)


def tokenize(text: str) -> list[Token]:
    """The tokens of a text in order; blanks other than line breaks are dropped."""
    new = tuple.__new__  # takes a third of the time of `Token(...)`
    return [new(Token, (m.lastgroup or "word", m.group(), *m.span())) for m in _TOKEN.finditer(text)]


def adjacent(text: str, left: Token, right: Token) -> bool:
    """Whether only one or two blanks on the same line separate two tokens."""
    return 0 < right.start - left.end <= 2 and text[left.end : right.start].strip(" \u00a0\t") == ""


def mostly_capitals(tokens: Sequence[Token]) -> bool:
    """Whether nearly all words are in capitals, so that capitals carry no information."""
    spelled = [token.text for token in tokens if token.kind == "word"]
    return len(spelled) > 3 and sum(word.isupper() and len(word) > 1 for word in spelled) > 0.6 * len(spelled)


_CODE = re.compile(
    r"[A-Z][A-Z0-9]{0,9}-\d{1,8}"  # ABC-123
    r"|[^\W_]+(?:_[^\W_]+)+"  # snake_case
    r"|_+[^\W_]+(?:_+[^\W_]+)*_*"  # __init__
    r"|[a-z]+[0-9]*(?:[A-Z][a-z0-9]+)+"  # camelCase
    r"|(?!Ma?c[A-Z])(?:[A-Z][a-z0-9]+){2,}"  # PascalCase, but not McDonald
    r"|(?=[A-Za-z0-9-]*\d)(?=[A-Za-z0-9-]*[A-Za-z])[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*"  # B2B, 4K, A380, x86
)
_AMOUNT = re.compile(
    r"\d+(?:st|nd|rd|th|s|am|pm|ish|k|m|x|ms|sec|min|h|hrs?|yrs?|mm|cm|km|ft|mg|kg|lbs?|ml|kb|mb|gb|tb|px|r?em|deg|fps|mph)",
    re.IGNORECASE,
)
"""An ordinal or an amount: 2nd, 5pm, 300ms."""

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
        return token.text if _CODE.fullmatch(token.text) and not _AMOUNT.fullmatch(token.text) else None
    return None
