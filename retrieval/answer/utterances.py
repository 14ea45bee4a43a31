"""Classifying turns by their words: small talk, a short reply, a mere question."""

from __future__ import annotations

import re
from collections.abc import Iterable

from graph.names import HAN, MARKS, SOUTH_EAST_ASIAN
from graph.stopwords import ENGLISH_FUNCTION_WORDS, INTERJECTIONS, STOP_WORDS, word_list

MOST_EMPTY_WORDS, MOST_EMPTY_CHARS = 12, 200
"""A longer turn is never small talk."""

MOST_REPLY_WORDS = 5
"""Most content words of a turn that may need its question to be understood."""

_WORD = re.compile(rf"[^\W_](?:[^\W_]|[{MARKS}])*+(?:['’](?:[^\W_]|[{MARKS}])+)?")
_GREEK_QUESTION_MARK = r"(?<=[\u0370-\u03ff\u1f00-\u1fff]);"
_QUESTION = re.compile(rf"(?:[?？؟\u037e]|{_GREEK_QUESTION_MARK})\Z")
_SENTENCE_END = re.compile(
    rf"(?<![.!?؟\u037e।۔。！？])(?:(?:[.!?؟\u037e।۔]++|{_GREEK_QUESTION_MARK})(?=\s|$)|[。！？]++)"
)
_UNSPACED = re.compile(rf"([{HAN}]+|[\u30a1-\u30fa\u30fc]+)|([{SOUTH_EAST_ASIAN}]+)")
"""Words in scripts without spaces: of two characters in Chinese and Japanese, where hiragana are mostly grammar, and of
six in Thai with its marks."""

_ANSWERS = word_list("number_and_calendar_words")  # "In May."
_SMALL_TALK = (ENGLISH_FUNCTION_WORDS | INTERJECTIONS | word_list("small_talk")) - _ANSWERS


def is_empty(text: str) -> bool:
    """Whether a turn says nothing by itself: no words, or a few words of small talk.

    >>> is_empty("Yes please!"), is_empty("👍"), is_empty("In 2019."), is_empty("Yes, in Porto.")
    (True, True, False, False)
    """
    if len(text) > MOST_EMPTY_CHARS:
        return False
    words = _words(text)
    return len(words) <= MOST_EMPTY_WORDS and all(word in _SMALL_TALK for word in words)


def is_short_reply(text: str) -> bool:
    """Whether a turn may not be understood without the question before it.

    >>> is_short_reply("About two weeks."), is_short_reply("My sister sold the blue sailing boat in Porto to Ann.")
    (True, False)
    """
    return content_words(_words(text)) <= MOST_REPLY_WORDS


def content_words(words: Iterable[str]) -> int:
    """The number of content words; what is written without spaces is estimated.

    >>> content_words(["the", "boat"]), content_words(["我什么时候去看牙医"]), content_words(["冬はどうですか"])
    (1, 4, 1)
    """
    return sum(_size(word) for word in words if word not in STOP_WORDS)


def _size(word: str) -> int:
    if word.isascii():
        return 1
    return sum(max(1, len(pairs) // 2 or len(sixes) // 6) for pairs, sixes in _UNSPACED.findall(word)) or 1


def is_mere_question(text: str) -> bool:
    """Whether a turn is only a question.

    >>> is_mere_question("Where do you live?"), is_mere_question("I live in Porto. And you?")
    (True, False)
    """
    text = text.strip()
    return _QUESTION.search(text) is not None and len(_SENTENCE_END.findall(text)) == 1


def _words(text: str) -> list[str]:
    return [word.replace("’", "'") for word in _WORD.findall(text.casefold())]
