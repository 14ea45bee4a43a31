"""A conversation that asks for context: the query in it, and what it holds already."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import unescape

from msgspec import UnsetType

from graph.stopwords import STOP_WORDS, words
from retrieval.text.normalized_text import without_speaker
from retrieval.text.time.periods import find_periods, without
from retrieval.types.search import ChatMessage, ContentPart

MOST_QUERY_CHARS = 8_192

MOST_ELLIPTICAL_WORDS = 2
"""Content words of a turn that may need the one before it to be understood: "And in winter?"."""

MOST_SEARCHED_CHARS = 200_000
"""Characters of the latest messages that are searched for a memory's text; older messages are only compared whole."""

MOST_ECHOED_WORDS = 2
"""Words of a text that a question may name without saying it: of "Duarte." in "Is it Ana or Duarte?"."""

_TOOLS = frozenset({"tool", "function"})
"""Roles of messages that are what tools answered."""

_WORD = re.compile(r"\w+")
_JSON_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_BETWEEN = "\n"

_REFERENCES = frozenset(
    words(
        "it its he him his she her hers they them their theirs these those one ones both which former latter same such",
        "too either neither another others",
    )
)
"""Words that stand for something said before."""


class Conversation:
    """What the messages of a conversation say, to tell which memories it holds."""

    def __init__(self, messages: Sequence[ChatMessage] = ()) -> None:
        """Read the messages, oldest first."""
        folded = [text for message in messages for said in _texts(message.content) for text in _readings(said)]
        self._whole = frozenset(folded)
        asked = next((message for message in reversed(messages) if message.role == "user"), None)
        self._asked = frozenset(_folded(said_in(asked)).split() if asked else ())
        latest: list[str] = []
        left = MOST_SEARCHED_CHARS
        for text in reversed(folded):
            latest.append(text if len(text) <= left else text[-left:].partition(" ")[2])
            if (left := left - len(text)) <= 0:
                break
        self._latest = f" {f' {_BETWEEN} '.join(latest)} "

    def __len__(self) -> int:
        """The number of distinct messages."""
        return len(self._whole)

    def holds(self, text: str, speaker: str | None = None) -> bool:
        """Whether a message says all of a text, apart from case, punctuation and its speaker's name.

        >>> Conversation([ChatMessage(role="user", content="Hi! I went out.")]).holds("Ann: I went out", "Ann")
        True
        """
        if not self._whole:
            return False
        folded = _folded(without_speaker(text, speaker))
        if not folded or folded in self._whole:
            return bool(folded)
        words = folded.split()
        if len(words) <= MOST_ECHOED_WORDS and self._asked.issuperset(words):
            return False
        return f" {folded} " in self._latest


def _texts(content: str | ContentPart | list[ContentPart] | UnsetType | None) -> Iterator[str]:
    """The texts of a message, with what tools answered in it."""
    if isinstance(content, str):
        yield content
    elif content:
        for part in content if isinstance(content, list) else [content]:
            yield from _texts(part.text)
            yield from _texts(part.content)


def said_in(message: ChatMessage) -> str:
    """What the speaker of a message says in it, without what tools answered.

    >>> said_in(ChatMessage(role="user", content=[ContentPart(text="Who is this?"), ContentPart(content="A tool.")]))
    'Who is this?'
    """
    content = "" if message.role in _TOOLS else message.content or ""
    parts = [content] if isinstance(content, str) else [part.text for part in content if part.text]
    return "\n".join(parts).strip()


def _readings(content: str) -> Iterator[str]:
    """A message, folded; also without the escapes of XML and JSON, as an earlier pack in it may have some."""
    yield _folded(content)
    for plain in (unescape(content), _JSON_ESCAPE.sub(" ", content)):
        if plain != content:
            yield _folded(plain)


def _folded(text: str) -> str:
    """The words of a text, case-folded, with a space between them."""
    return " ".join(_words(text))


def query_of(messages: Sequence[ChatMessage]) -> str:
    """What the user said last, after what that refers to; without a user, what anyone said last.

    A turn that has a pronoun or says little is preceded by the user's turn before it, and by more while all say
    nothing; one that names a time goes without the times of that turn. Only the end is kept of what is longer than a
    query may be.

    >>> query_of([ChatMessage(role="user", content=text) for text in ("Who is Ann?", "Where does she live?")])
    'Who is Ann? Where does she live?'
    """
    said = [(each.role, text) for each in messages if (text := said_in(each))]
    by_user = [text for role, text in said if role == "user"]
    *earlier, query = [text[-MOST_QUERY_CHARS:] for text in by_user or [text for _, text in said] or [""]]
    if earlier and (_content(query) <= MOST_ELLIPTICAL_WORDS or _REFERENCES.intersection(_words(query))):
        before = earlier.pop()
        # One that says another time asks for that.
        query = f"{without(before, _times(before)) if _times(query) else before} {query}"
    while earlier and len(query) < MOST_QUERY_CHARS and not _content(query):
        query = f"{earlier.pop()} {query}"
    return query[-MOST_QUERY_CHARS:]


def _times(text: str) -> list[tuple[int, int]]:
    """Where a text names times."""
    return [period.span for period in find_periods(text, asked_at=datetime.now(UTC))]


def _content(text: str) -> int:
    """How many words of a text are about something."""
    return sum(word not in STOP_WORDS for word in _words(text))


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text.casefold()))
