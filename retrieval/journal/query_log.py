"""The entries of the query log, which a namespace can enable, and their redaction.

Redaction removes too much rather than too little: an address takes the whole whitespace-delimited word with it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import astuple

from retrieval.types.journal import LoggedQuery, ScoredId
from retrieval.types.namespace import QueryLogSettings, Redaction
from retrieval.types.search import Filters, SearchRequest

HASH_CHARS = 32
"""Length of a keyed hash, in hexadecimal digits."""

_WORD = re.compile(r"\S+")
_EMAIL = re.compile(r"[^@＠﹫][@＠﹫][^@＠﹫]")
_URL = re.compile(r"://|www\.|\w\.[^\W\d_]{2,}/", re.IGNORECASE)

_BETWEEN_DIGITS = r"[\s().\-/·\u00ad\u200b\u2010-\u2015\u2060\u2212\uff0d]{0,3}"
_DATE = (
    r"(?<!\d)(?:(?:19|20)\d\d-(?:0\d|1[0-2])-(?:[0-2]\d|3[01])|(?:[0-2]?\d|3[01])[./](?:[0-2]?\d|3[01])[./](?:19|20)\d\d)"
    r"(?![.\-/]?\d)"
)
_PHONE = re.compile(rf"(?P<date>{_DATE})|[+＋]?\(?\d(?:{_BETWEEN_DIGITS}\d){{6,}}")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def redact(text: str, redactions: Collection[Redaction]) -> str:
    """Replace redacted parts of a text by marks.

    An e-mail address is anything with an `@` inside it, a URL anything with `://` or `www.`, or a host with a path; a
    phone number is seven digits or more, with signs or spaces between them, unless they are a date. Time and memory are
    linear in the length of the text. `all` leaves nothing.

    >>> redact("Did ana@example.org call +44 20 7946 0958 on 2024-05-01?", ["email", "phone"])
    'Did [email] call [phone] on 2024-05-01?'
    """
    if "all" in redactions:
        return ""
    for redaction, replace in _REPLACEMENTS.items():
        if redaction in redactions:
            text = replace(text)
    return text


def _words_with(pattern: re.Pattern[str], mark: str) -> Callable[[str], str]:
    """Replaces each word that contains the pattern."""
    return lambda text: _WORD.sub(lambda word: mark if pattern.search(word[0]) else word[0], text)


_REPLACEMENTS: dict[Redaction, Callable[[str], str]] = {
    "url": _words_with(_URL, "[url]"),
    "email": _words_with(_EMAIL, "[email]"),
    "phone": lambda text: _PHONE.sub(lambda found: found["date"] or "[phone]", text),
    "number": lambda text: _NUMBER.sub("[number]", text),
}
"""In order of application."""


def redacted_filters(filters: Filters, redactions: Collection[Redaction]) -> Filters | None:
    """The filters unchanged, or None if they contain anything to redact: redacted values would filter differently."""
    return filters if all(redact(text, redactions) == text for text in _filter_texts(filters)) else None


def contains(entry: LoggedQuery, part: str) -> bool:
    """Whether the query or a filter contains `part`, ignoring case and Unicode composition."""
    texts = [entry.query or "", *(_filter_texts(entry.filters) if entry.filters else ())]
    wanted = _folded(part)
    return any(wanted in _folded(text) for text in texts)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())


def _filter_texts(filters: Filters) -> Iterator[str]:
    """All strings and numbers that filters name, keys of metadata included; times are skipped."""
    pending: list[Any] = [*astuple(filters)]
    while pending:
        found = pending.pop()
        if isinstance(found, dict):
            pending += [*found.keys(), *found.values()]
        elif isinstance(found, list):
            pending += found
        elif isinstance(found, str | int | float):
            yield str(found)


def keyed_hash(text: str, key: bytes) -> str:
    """Equal for equal texts under one key; without the key, texts cannot be guessed by trial.

    The first 128 bits of HMAC-SHA256 (RFC 2104), in hexadecimal.
    """
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:HASH_CHARS]


@dataclass(frozen=True, kw_only=True, slots=True)
class AnsweredSearch:
    """An answered search, before redaction: labels of its profile and intent, ids best first with their scores."""

    search_id: str
    request: SearchRequest
    profile: str
    intent: str | None
    ids: Sequence[str]
    scores: Sequence[float]
    total_ms: float
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


def entry_of(searched: AnsweredSearch, settings: QueryLogSettings, key: bytes) -> LoggedQuery:
    """The log entry of a search; with `all` redacted, `key` is used for the hash."""
    request, withheld = searched.request, "all" in settings.redact
    results = [ScoredId(id=id_, score=score) for id_, score in zip(searched.ids, searched.scores, strict=True)]
    return LoggedQuery(
        id=searched.search_id,
        at=searched.at,
        query=None if withheld else redact(request.query, settings.redact),
        query_chars=len(request.query),
        query_hash=keyed_hash(request.query, key) if withheld else None,
        mode=request.mode.value,
        profile=searched.profile,
        intent=searched.intent,
        results=results if settings.store_results else None,
        filters=redacted_filters(request.filters, settings.redact),
        as_of=request.as_of,
        query_timestamp=request.query_timestamp,
        total_ms=searched.total_ms,
    )
