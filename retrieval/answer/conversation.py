"""A conversation that asks for context: the query in it, and what it already contains."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import unescape

from msgspec import UnsetType

from graph.names import MARKS
from graph.stopwords import words
from retrieval.answer.excerpt import sentence_spans
from retrieval.answer.utterances import content_words, is_mere_question
from retrieval.text.normalized_text import without_speaker
from retrieval.text.time.periods import find_periods, without
from retrieval.types.search import ChatMessage, ContentPart

MOST_QUERY_CHARS = 8_192

MOST_ASKING_CHARS = 1_000
"""A longer query is a text with a question in it; the bundled embedder reads about as much of it.

The bound and the rule: docs/decisions/0048-long-queries.md.
"""

MOST_ELLIPTICAL_WORDS = 2
"""Most content words of a turn that may need the one before it to be understood: "And in winter?"."""

MOST_SEARCHED_CHARS = 200_000
"""Characters of the latest messages that are searched for a memory's text; older messages are only compared whole."""

MOST_ECHOED_WORDS = 2
"""Most words of a text that a question may mention without stating it: "Duarte." in "Is it Ana or Duarte?"."""

_TOOLS = frozenset({"tool", "function"})
"""Roles of tool results."""

_ROLES = {
    **dict.fromkeys(("user", "human", "you said"), "user"),
    **dict.fromkeys(("assistant", "ai", "chatgpt", "chatgpt said", "claude"), "assistant"),
    "system": "system",
}
_TURN = re.compile(
    r"^(?:#{1,6}[ \t]+(?:\*\*)?|\*\*|(?=[\w \t]{2,15}:))"
    rf"({'|'.join(_ROLES)})(?:\*\*)?[ \t\r]*(?::(?:\*\*)?|$)",
    re.IGNORECASE | re.MULTILINE,
)
"""Begins a turn of a conversation that was written out as one text: `User:`, `**User:**`, `### User`, `You said:`."""

_REQUEST = re.compile(
    r"please,? (?:tell|remind|give|show|list|name|describe|explain|summari[sz]e) |(?:tell|remind|give|show) me "
    r"|(?:list|name|describe|explain|summari[sz]e) (?:all|every|the|my|our|how|what|which|who|why|where|when) "
    r"|i (?:want|need) to know |i(?:['’]d| would) like to know ",
    re.IGNORECASE,
)
"""Begins a request, which asks without a question mark."""

_MAY_ASK = re.compile(
    r"(?:am|are|can|could|did|do|does|had|has|have|is|may|might|should|was|were|will|would)\b"
    r"|.*\b(?:how|what|when|where|which|who|whom|whose|why)\b",
    re.IGNORECASE,
)
"""Matches a line that may be a question without its mark; few titles do, and few begin with a small letter."""

_LEAST_REQUESTED_WORDS = 2
"""Fewest content words of a request: "Please tell me by Friday." ends a mail that was pasted."""

_WORD = re.compile(rf"\w[\w{MARKS}]*")
_JSON_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_BETWEEN = "\n"

_REFERENCES = frozenset(
    words(
        "it its he him his she her hers they them their theirs these those one ones both which former latter same such",
        "too either neither another others",
    )
)
"""Words that stand for something said before."""

_UNSPACED_REFERENCE = re.compile(
    "(?<!吉)[他她它]|(?<![耳尤])其(?![实實])|[这這](?![个個]?(?:[周週月年]|星期))|[那彼]|それ(?!ぞれ)|その|そこ|これ|この"
    "|(?<!ภู)เขา|เธอ|(?<!น้ำ)มัน|นั้น|(?<!วัน|วาน)(?<!ปี)(?<!เดือน)(?<!สัปดาห์)นี้"
)
"""The same in scripts without spaces; not within a guitar, Turkey, a mountain, oil, and this week or today."""


class Conversation:
    """The texts of a conversation's messages, to tell which memories it already contains."""

    def __init__(self, messages: Sequence[ChatMessage] = ()) -> None:
        """Read the messages, oldest first."""
        folded = [text for message in messages for said in texts_in(message.content) for text in _readings(said)]
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
        """Whether a message contains the whole text, ignoring case, punctuation and the speaker's name.

        >>> Conversation([ChatMessage(role="user", content="Hi! I went out.")]).holds("Ann: I went out", "Ann")
        True
        """
        if not self._whole:
            return False
        folded = _folded(without_speaker(text, speaker))
        if folded in self._whole:
            return bool(folded)
        words = folded.split()
        if len(words) <= MOST_ECHOED_WORDS and self._asked.issuperset(words):
            return False
        return f" {folded} " in self._latest


def texts_in(content: str | ContentPart | list[ContentPart] | UnsetType | None) -> Iterator[str]:
    """The texts of a message's content, including tool results."""
    if isinstance(content, str):
        yield content
    elif content:
        for part in content if isinstance(content, list) else [content]:
            yield from texts_in(part.text)
            yield from texts_in(part.content)


def said_in(message: ChatMessage) -> str:
    """The text of a message without tool results.

    >>> said_in(ChatMessage(role="user", content=[ContentPart(text="Who is this?"), ContentPart(content="A tool.")]))
    'Who is this?'
    """
    content = "" if message.role in _TOOLS else message.content or ""
    parts = [content] if isinstance(content, str) else [part.text for part in content if part.text]
    return "\n".join(parts).strip()


def _readings(content: str) -> Iterator[str]:
    """A message, folded, with and without unescaping XML and JSON: it may contain an earlier pack."""
    yield _folded(content)
    for plain in (unescape(content), _JSON_ESCAPE.sub(" ", content)):
        if plain != content:
            yield _folded(plain)


def _folded(text: str) -> str:
    """The words of a text, case-folded, with a space between them."""
    return " ".join(_words(text))


def query_of(messages: Sequence[ChatMessage]) -> str:
    """The user's last message, after the one that it refers to; if no message is the user's, the last of all.

    A turn with a pronoun or few content words is preceded by the user's previous turn, and by earlier ones until there
    is a content word. If the turn names a time, times are removed from the previous one. A text that is too long for a
    query keeps its end.

    >>> query_of([ChatMessage(role="user", content=text) for text in ("Who is Ann?", "Where does she live?")])
    'Who is Ann? Where does she live?'
    """
    said = [(each.role, text) for each in messages if (text := said_in(each))]
    by_user = [text for role, text in said if role == "user"]
    *earlier, query = by_user or [text for _, text in said] or [""]
    earlier, query = [text[-MOST_QUERY_CHARS:] for text in earlier], question_in(query)[-MOST_QUERY_CHARS:]
    return _in_context(query, earlier)[-MOST_QUERY_CHARS:]


def _in_context(query: str, earlier: list[str]) -> str:
    """The query after those of the earlier texts that it refers to, which are taken out of the list."""
    if earlier and (_content(query) <= MOST_ELLIPTICAL_WORDS or _refers(query)):
        before = question_in(earlier.pop())
        # A time in the later turn replaces those in the earlier one.
        query = f"{without(before, _times(before)) if _times(query) else before} {query}"
    says_something = _content(query) > 0
    while earlier and len(query) < MOST_QUERY_CHARS and not says_something:
        before = earlier.pop()
        says_something = _content(before) > 0
        query = f"{before} {query}"
    return query


def question_in(text: str) -> str:
    r"""What a text asks: of a written-out conversation its `query_of`, of a long text its questions, else its requests.

    These are the questions of the last paragraph, else of the first, else all, after the sentences that they refer to.
    Without a question they are the requests of the last paragraph, else of the first, that need nothing before them.
    Below a first line without an end that may ask, those of the last paragraph may be part of a text that was pasted.

    >>> question_in("User: Who is Ann?\nAssistant: Your sister.\nUser: Where does she live?")
    'Who is Ann? Where does she live?'
    >>> question_in("It rained all day. " * 60 + "What boats did Ann sell in Porto? Thanks!")
    'What boats did Ann sell in Porto?'
    """
    if said := _written_out(text):
        text = query_of(said) or text
    if len(text) <= MOST_ASKING_CHARS:
        return text
    text = text.strip()
    spans = sentence_spans(text)
    sentences = [text[slice(*span)] for span in spans]
    first, last = text.find("\n"), text.rfind("\n")

    def at_an_end(numbers: list[int]) -> list[int]:
        in_last = [number for number in numbers if spans[number][0] > last]
        return in_last or [number for number in numbers if spans[number][1] <= first]

    questions, requests = (
        [number for number, sentence in enumerate(sentences) if asks(sentence)]
        for asks in (is_mere_question, _is_request)
    )
    if _may_ask(text[: max(first, 0)]):
        requests = [number for number in requests if spans[number][1] <= first]
    asking = at_an_end(questions) or questions or at_an_end(requests)
    if not asking:
        return text
    return _in_context(" ".join(sentences[number] for number in asking), sentences[: asking[0]])


def _written_out(text: str) -> list[ChatMessage]:
    """The messages of a conversation that was written out as one text.

    Empty if a question may stand before or after it, if all lines have one role, as in logs and settings, or if none is
    the assistant's and something stands before them, as in a report with its `System:` and `User:`.
    """
    before, *turns = _TURN.split(text)
    said = [(_ROLES[role.casefold()], content.strip()) for role, content in zip(turns[::2], turns[1::2], strict=True)]
    roles = {role for role, _ in said}
    if len(roles) < 2 or (before.strip() and "assistant" not in roles) or _asks(before) or _may_ask(before):
        return []
    role, content = said[-1]
    _, is_after, last = content.rpartition("\n")
    if role != "user" and is_after and (len(text) <= MOST_ASKING_CHARS or _asks(last)):
        return []
    return [ChatMessage(role=role, content=content) for role, content in said]


def _asks(text: str) -> bool:
    """Whether a sentence of a text is a question or a request."""
    sentences = [text[slice(*span)] for span in sentence_spans(text)]
    return any(is_mere_question(sentence) or _is_request(sentence) for sentence in sentences)


def _may_ask(line: str) -> bool:
    """Whether a line without an end may be a question or a request."""
    line = line.strip()
    return line[-1:].isalnum() and bool(line[0].islower() or _MAY_ASK.match(line) or _REQUEST.match(line))


def _is_request(sentence: str) -> bool:
    """Whether a sentence asks without a question mark, and names what it asks for."""
    begins = _REQUEST.match(sentence)
    return begins is not None and _content(sentence[begins.end() :]) >= _LEAST_REQUESTED_WORDS and not _refers(sentence)


def _times(text: str) -> list[tuple[int, int]]:
    """The spans of the times that a text names."""
    return [period.span for period in find_periods(text, asked_at=datetime.now(UTC))]


def _content(text: str) -> int:
    """The number of content words of a text."""
    return content_words(_words(text))


def _refers(text: str) -> bool:
    return not _REFERENCES.isdisjoint(_words(text)) or _UNSPACED_REFERENCE.search(text) is not None


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text.casefold()))
