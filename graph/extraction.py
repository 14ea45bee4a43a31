"""Rule-based extraction of entities and quoted titles: no model, no gazetteer of the world."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from math import log
from typing import NamedTuple

from graph.dates import find_dates
from graph.names import normalize, singular_key
from graph.phrases import CJK, find_cjk, find_phrases
from graph.proper_nouns import find_names
from graph.stopwords import INTERJECTIONS, STOP_WORDS
from graph.tokenizer import MAX_WORD_CHARS, Token, identifier, mostly_capitals, tokenize

MAX_MENTIONS = 64
"""Maximum entities of one memory; those with the greatest weight are kept."""

MAX_TERMS = 32
"""Most of those that may be single common words."""

WEIGHTS = {"title": 1.0, "speaker": 0.7, "name": 0.8, "identifier": 0.8, "phrase": 0.6, "term": 0.4}
"""The weight of a mention by kind, in (0, 1]; dates have their own."""

TOKENIZED_TYPES = frozenset({"phrase", "term", "date", "identifier"})
"""Types without a proper name: linked by their whole name, not by a word of it, a nickname or an acronym."""

_BRACKETS = re.compile(r"\s*[(\[][^()\[\]]{0,200}[)\]]\s*$")


class ExtractedMention(NamedTuple):
    """An entity found in a text: the spelling, its key, a type and a weight in (0, 1]."""

    name: str
    key: str
    type: str
    weight: float


def extract(text: str, *, title: str | None = None, speaker: str | None = None) -> list[ExtractedMention]:
    """Extract the entities that a memory mentions: by falling weight, each key once, at most 64.

    Takes time linear in the length of the text. A leading "Speaker:" is ignored; the title is added whole and without
    a closing bracketed part.

    >>> [(m.name, m.type) for m in extract("Ann: I met Dr. Bob Ray in Rome.", speaker="Ann")]
    [('Dr. Bob Ray', 'name'), ('Rome', 'name'), ('Ann', 'speaker')]
    """
    best: dict[str, ExtractedMention] = {}
    counts: dict[str, int] = {}
    for found in map(ExtractedMention._make, _found(text, title, speaker)):
        key = found.key
        if not key or len(key) > 200:
            continue
        counts[key] = counts.get(key, 0) + 1
        if key not in best or found.weight > best[key].weight:
            best[key] = found
    ranked = sorted(best.values(), key=lambda m: -m.weight * (1 + 0.3 * log(counts[m.key])))
    too_many = {*[mention for mention in ranked if mention.type == "term"][MAX_TERMS:]}
    return [mention for mention in ranked if mention not in too_many][:MAX_MENTIONS]


def _found(text: str, title: str | None, speaker: str | None) -> Iterator[tuple[str, str, str, float]]:
    """Every mention as (name, key, type, weight), duplicates included."""
    if speaker:
        yield speaker, normalize(speaker), "speaker", WEIGHTS["speaker"]
        if text.startswith(speaker) and text[len(speaker) :].lstrip().startswith(":"):
            text = text[len(speaker) :].lstrip()[1:]
    if title:
        bare = _BRACKETS.sub("", title) or title
        for name in dict.fromkeys((bare, title)):
            yield name, normalize(name), "title", WEIGHTS["title"]
    text = unicodedata.normalize("NFC", text)  # word lists and patterns have composed letters
    tokens = tokenize(text)
    taken: set[int] = set()
    for date in find_dates(tokens):
        taken.update(date.tokens)
        yield date.name, normalize(date.name), "date", date.weight
    yield from _names(text, tokens, taken, f"{title or ''} {speaker or ''}")
    codes = {
        position: code
        for position, token in enumerate(tokens)
        # Skip words that cannot be identifiers: letters with at most an initial capital.
        if not (token.text.isalpha() and token.text[1:].islower())
        and position not in taken
        and (code := identifier(token))
    }
    for code in codes.values():
        yield code, normalize(code), "identifier", WEIGHTS["identifier"]
    taken.update(codes)
    for token in tokens if CJK.search(text) else ():
        if len(token.text) <= MAX_WORD_CHARS * 8 and token.kind == "word":
            for run in find_cjk(token.text):
                yield run, normalize(run), "phrase", WEIGHTS["phrase"]
    rest = [_BREAK if position in taken else token for position, token in enumerate(tokens)] if taken else tokens
    for words in find_phrases(rest):
        name = " ".join(words)
        type_ = "phrase" if len(words) > 1 else "term"
        yield name, singular_key(normalize(name)), type_, WEIGHTS[type_]


_BREAK = Token("mark", "|", -9, -9)


def _names(text: str, tokens: list[Token], taken: set[int], known_names: str) -> Iterator[tuple[str, str, str, float]]:
    """The capitalised names; adds the tokens of certain names to `taken`.

    A sentence's first word is a name only if the text never writes it in lower case and it is in `known_names`, part
    of a longer name, or a name elsewhere in the text.
    """
    if mostly_capitals(tokens):
        return
    titles = list(find_quoted(text))
    for title, _ in titles:
        yield title, normalize(title), "name", WEIGHTS["name"]
    quoted = [match.span(1) for title, match in titles if " " in title]
    words = {position for position in taken if tokens[position].kind == "word"}
    found = [name for name in find_names(text, tokens) if words.isdisjoint(name.tokens)]
    sure = {part for name in found if not name.doubtful for part in name.name.casefold().split()}
    if len(sure) < len(found):
        sure.update(normalize(known_names).split())
        sure.difference_update(token.text for token in tokens)
    for name in found:
        if name.doubtful and name.name.casefold() not in sure:
            continue
        start, end = tokens[name.tokens[0]].start, tokens[name.tokens[-1]].end
        if len(name.tokens) == 1:
            if not tokens[name.tokens[0]].text.isalpha() and identifier(tokens[name.tokens[0]]):
                continue
            begun = bisect_right(quoted, (start, len(text)))
            if begun and end <= quoted[begun - 1][1]:
                continue
        taken.update(name.tokens)
        yield name.name, normalize(name.name), "name", WEIGHTS["name"]


MAX_TITLE_WORDS = 8

_QUOTED = re.compile(r"[\"\u201c\u00ab]([^\"\u201c\u201d\u00ab\u00bb\n]{2,80})[\"\u201d\u00bb]")


def find_quoted(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Quoted strings that look like the title of a work, with their matches: capitalised, at most eight words.

    >>> [title for title, _ in find_quoted('We saw "Katy Lied". She said "Yes, I think so."')]
    ['Katy Lied']
    """
    for match in _QUOTED.finditer(text):
        title = match.group(1).strip(" ,.;")
        if title[:1].isupper() and title[-1:] not in "?:" and _is_title(title.split()):
            yield title, match


def _is_title(parts: list[str]) -> bool:
    """Whether most words of four letters or more are capitalised; short speech ("Wow!") is not a title."""
    if len(parts) > MAX_TITLE_WORDS:
        return False
    folded = [part.strip(".,!'\u2019").casefold() for part in parts]
    if folded[0] in INTERJECTIONS or (len(parts) == 1 and (folded[0] in STOP_WORDS or parts[0].endswith("!"))):
        return False
    if len(parts) < 3:
        return not parts[-1].endswith("!") or parts[-1][0].isupper()
    heavy = [part for part, word in zip(parts, folded, strict=True) if len(word) > 3]
    return sum(part[0].isupper() for part in heavy) * 2 > len(heavy) or not heavy
