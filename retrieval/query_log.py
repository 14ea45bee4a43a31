"""What a namespace keeps of its searches if its owner wants that: the entries, and what is taken out of them.

Redaction leaves out too much rather than too little: whatever stands between two spaces goes as a whole when an
address is in it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from retrieval.types import Filters, QueryLogSettings, Redaction, SearchRequest, Zoned

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


class ScoredId(Struct, frozen=True, kw_only=True):
    """A memory that was answered, with its score."""

    id: str
    score: float


class LoggedQuery(Struct, frozen=True, kw_only=True):
    """One search of the log."""

    id: Annotated[str, Meta(description="the `search_id` of its answer")]
    at: Zoned
    query: Annotated[str | None, Meta(description="after redaction; null: withheld")]
    query_chars: Annotated[int, Meta(description="of the query as it was asked")]
    query_hash: Annotated[str | None, Meta(description="with `all` redacted: equal for equal queries of the namespace")]
    mode: str
    profile: str
    intent: str | None
    results: Annotated[list[ScoredId] | None, Meta(description="best first; null: not kept")]
    filters: Annotated[Filters | None, Meta(description="null: withheld, since something to redact stood in them")]
    as_of: Zoned | None
    query_timestamp: Zoned | None
    total_ms: float


class QueryPage(Struct, frozen=True, kw_only=True):
    """A page of the log, oldest first; `next_cursor` is null on the last."""

    queries: list[LoggedQuery]
    next_cursor: str | None


def redact(text: str, redactions: Collection[Redaction]) -> str:
    """The text with marks in place of what is taken out.

    An e-mail address is anything with an `@` inside it, a URL anything with `://` or `www.`, or a host with a path;
    a phone number is seven digits or more, with signs or spaces between them, unless they are a date. Time and
    memory grow linearly with the text.

    Args:
        text: of any length.
        redactions: what to take out; `all` leaves nothing.

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
    """Replaces each word in which the pattern is found."""
    return lambda text: _WORD.sub(lambda word: mark if pattern.search(word[0]) else word[0], text)


_REPLACEMENTS: dict[Redaction, Callable[[str], str]] = {
    "url": _words_with(_URL, "[url]"),
    "email": _words_with(_EMAIL, "[email]"),
    "phone": lambda text: _PHONE.sub(lambda found: found["date"] or "[phone]", text),
    "number": lambda text: _NUMBER.sub("[number]", text),
}
"""In the order in which they are applied."""


def redacted_filters(filters: Filters, redactions: Collection[Redaction]) -> Filters | None:
    """The filters as they are, or None where something in them is to be redacted: changed, they would be others."""
    texts = _texts([getattr(filters, name) for name in Filters.__struct_fields__])
    return filters if all(redact(text, redactions) == text for text in texts) else None


def _texts(value: Any) -> Iterator[str]:
    """What stands in JSON, numbers and names of fields included; times are no texts."""
    pending = [value]
    while pending:
        found = pending.pop()
        if isinstance(found, dict):
            pending += [*found.keys(), *found.values()]
        elif isinstance(found, list):
            pending += found
        elif isinstance(found, str | int | float):
            yield str(found)


def keyed_hash(text: str, key: bytes) -> str:
    """Equal for equal texts under one key; without the key it cannot be found out by trying texts.

    The first 128 bits of HMAC-SHA256 (RFC 2104), in hexadecimal.
    """
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:HASH_CHARS]


@dataclass(frozen=True, kw_only=True, slots=True)
class Searched:
    """A search that was answered, before redaction.

    Attributes:
        search_id: names it.
        request: as it was asked.
        profile: label of the profile that answered.
        intent: label of the intent that it was answered for; None where there was none.
        ids: what was answered, best first.
        scores: of the ids.
        total_ms: how long it took.
    """

    search_id: str
    request: SearchRequest
    profile: str
    intent: str | None
    ids: Sequence[str]
    scores: Sequence[float]
    total_ms: float
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


def entry_of(searched: Searched, settings: QueryLogSettings, key: bytes) -> LoggedQuery:
    """What is written of a search; with `all` redacted, `key` makes the hash."""
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
