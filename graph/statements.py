"""Extracts the relations that a text states explicitly, by a few patterns of high precision."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from graph.dates import MONTHS, WEEKDAYS
from graph.graph_rows import GivenRelation
from graph.names import normalize, singular
from graph.relation_patterns import (
    ANOTHER_WORK,
    BORNE_BY,
    BOTH,
    CALLED,
    DENIED,
    IS_BEFORE,
    IS_OWNER,
    KIN,
    NO_LONGER,
    NOT_NAMED_SO,
    PATTERNS,
    POSSESSOR,
    QUOTED_WORK,
    SUBJECT,
    TARGETS,
    TRIGGER,
    UNSURE,
)
from graph.stopwords import ENGLISH_FUNCTION_WORDS, INTERJECTIONS, words

MAX_SIDE_CHARS = 120
"""How far from the trigger to search for a name; doubt and denial are searched for twice as far before it."""

_SEARCHED_CHARS = 50_000
"""Characters searched for triggers at once, as no other thread runs meanwhile: 12 ms of usual text."""

_STOP = re.compile(
    r"(?<![\s.(][A-Z])(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bSt)(?<!\bMt)(?<!\bMrs)(?<!\bProf)[.!?]{1,20}[\"\u201d')]{0,20}(?=\s|\Z)"
    r"|\n|;"
)
_ASIDE = re.compile(
    r"(?:\b(?:also|now|currently|just|still|later|then|originally|recently|finally|actually|already|have|has|been|am|is"
    r"|was|got|get|both|happily|proud|an|a|integral|co)\s|(?<=\w)['\u2019](?:s|m|ve)\s)+\Z"
)
_ASKS = frozenset(
    words("is was are were do does did has have had can could will would should if when where who why how")
)
_OPENERS = (ENGLISH_FUNCTION_WORDS | INTERJECTIONS | {"today", "yesterday", "tomorrow", "lately", "guess"}) - {"may"}
_OF_SOMEBODY = KIN.keys() | {"fan", "member", "student", "people", "part", "one", "some", "most", "half", "relative"}
_NO_NAMES = WEEKDAYS | frozenset(MONTHS) | frozenset(words("am pm ok tv mom mum dad work love life"))


_Triple = tuple[str, str, str]
"""Source, relation, target."""


class _Place(NamedTuple):
    """The context of a trigger."""

    text: str
    end: int  # where to stop reading after the trigger
    before: str  # the part of the sentence before the trigger
    opens: bool  # whether the sentence is the first of the text
    sure: bool  # whether no word before the trigger makes it a wish or a guess
    speaker: str | None
    title: str | None


def find_relations(text: str, *, speaker: str | None = None, title: str | None = None) -> list[GivenRelation]:
    """The relations that a text states, in text order, each once; denials, questions and suppositions are skipped.

    Takes time linear in the length of the text. "I" is the speaker; without one, statements in the first person are
    skipped. The title is the subject of the first sentence of an encyclopaedic text. The type of a relation is one of
    married_to, sibling_of, parent_of, child_of, friend_of, colleague_of, works_at, lives_in, born_in, from, founded,
    owns, has_pet, directed, wrote, created, located_in, part_of, capital_of and member_of.

    >>> [(s.source, s.type, s.target) for s in find_relations("My sister Ann works at Acme.", speaker="Bo")]
    [('Bo', 'sibling_of', 'Ann'), ('Ann', 'works_at', 'Acme')]
    """
    text = unicodedata.normalize("NFC", text)  # the pattern of a name has composed letters
    triggers = list(_triggers(text))
    if not triggers:
        return []
    prefix = unicodedata.normalize("NFC", f"{speaker}:")
    first = len(prefix) if speaker and text.startswith(prefix) else 0
    stops = list(_STOP.finditer(text, first))
    ends = [stop.end() for stop in stops]
    bare = re.sub(r"\s*\([^()]*\)\s*\Z", "", title) if title else None
    found: dict[GivenRelation, None] = {}
    for trigger in triggers:
        number = bisect_right(ends, trigger.start())
        start = ends[number - 1] if number else first
        end = stops[number].start() if number < len(stops) else len(text)
        near = max(start, trigger.start() - 2 * MAX_SIDE_CHARS)
        if number < len(stops) and "?" in stops[number].group():
            continue
        reach = min(end, trigger.end() + MAX_SIDE_CHARS)
        # "I can't cook, but my sister Ann can": the name of a relative is denied only within its own clause.
        clause = text.rfind(",", near, trigger.start()) + 1 if trigger.lastgroup in ("mine", "whose") else 0
        if DENIED.search(text, max(near, clause), trigger.end()) or NO_LONGER.search(text, trigger.end(), reach):
            continue
        before = text[max(start, trigger.start() - MAX_SIDE_CHARS) : trigger.start()]
        sure = not UNSURE.search(text, near, trigger.end())
        for source, relation, target in _read(trigger, _Place(text, reach, before, number == 0, sure, speaker, bare)):
            if normalize(source) != normalize(target):
                found[GivenRelation(source, relation, target)] = None
    return list(found)


def _triggers(text: str) -> Iterator[re.Match[str]]:
    """The triggers, searched for in parts that end with a full stop, which no trigger contains."""
    start = 0
    while start < len(text):
        end = text.find(".", start + _SEARCHED_CHARS, start + 2 * _SEARCHED_CHARS) + 1 or start + 2 * _SEARCHED_CHARS
        yield from TRIGGER.finditer(text, start, end)
        start = end


def _read(trigger: re.Match[str], place: _Place) -> Iterator[_Triple]:
    """The statements of one trigger."""
    kind = trigger.lastgroup or ""
    if kind in ("mine", "whose"):
        yield from _relatives(trigger, KIN[trigger[kind]], place)
    elif not place.sure:
        return
    elif kind == "both":
        if place.speaker and (name := _subject(place, "third")):
            yield place.speaker, BOTH[trigger["both"]], name
    elif kind in ("of", "has"):
        follows = CALLED.match(place.text, trigger.end() - 1, place.end)
        who = _subject(place, "any" if kind == "has" else "third")
        name = _clean(follows["target"]) if follows and not IS_OWNER.match(place.text, follows.end()) else None
        if who and name:
            source, target = (who, name) if kind == "has" else (name, who)
            yield source, KIN[trigger[kind]], target
    else:
        yield from _pattern_statements(int(kind[1:]), trigger.end(), place)


def _pattern_statements(number: int, position: int, place: _Place) -> Iterator[_Triple]:
    pattern = PATTERNS[number]
    if pattern.said.startswith("moved") and place.title:
        return  # players move to clubs, stations to frequencies
    match = TARGETS[number].match(place.text, position, place.end)
    if not match:
        return
    topic = normalize(place.title) if place.title and place.opens else ""
    about_title = bool(topic) and normalize(place.before).startswith(topic)
    if pattern.who == "before":
        source = _subject(place, pattern.persons)
        if source is None and pattern.persons == "third" and about_title and not BORNE_BY.search(place.before):
            source = place.title
        said = match["target"]
        target = said.strip('"\u201c\u201d ,.') if said[0] in '"\u201c' else _clean(said)
        if source and target:
            yield source, pattern.relation, target
        return
    if quoted := QUOTED_WORK.search(place.before):
        work: str | None = quoted[1].strip(" ,.")
    elif about_title:
        work = None if ANOTHER_WORK.search(place.before) else place.title
    else:
        work = _subject(place, "third")
    for maker in match.groups():
        if maker and work and (name := _clean(maker)):
            yield name, pattern.relation, work


def _relatives(trigger: re.Match[str], relation: str, place: _Place) -> Iterator[_Triple]:
    """Named relatives: "my sister Ann", "Bo's sister Ann", "Ann is my sister", "Ann is Bo's sister"."""
    before, owner = place.before, place.speaker
    if trigger.lastgroup == "whose":
        possessor = POSSESSOR.search(before)
        owner = _clean(possessor["name"]) if possessor else None
        before = before[: possessor.start()] if possessor else ""
    if not owner:
        return
    if called := CALLED.match(place.text, trigger.end(), place.end):
        name = _clean(called["target"])
        if name and normalize(name).split()[0] not in NOT_NAMED_SO:
            yield owner, relation, name
        return
    after = place.text[trigger.end() : trigger.end() + 1]
    identified = IS_BEFORE.search(before) if place.sure and after not in ("'", "\u2019") else None
    if not identified or (identified.group().endswith(", ") and after != ","):
        return
    if (name := _clean(identified["name"])) and not BORNE_BY.search(before[: identified.start()]):
        yield owner, relation, name


def _subject(place: _Place, persons: str) -> str | None:
    """The subject before the stating words: the speaker for "I", or a name."""
    bare = _ASIDE.sub("", place.before)
    match = SUBJECT.search(bare)
    if not match:
        return None
    if match["me"]:
        return place.speaker if persons != "third" else None
    if persons == "first" or BORNE_BY.search(bare[: match.start()]):
        return None
    return _clean(match["name"])


def _clean(name: str) -> str | None:
    """The name without sentence openers; None for questions, pronouns and months."""
    parts = name.split()
    while parts and parts[0].casefold().replace("\u2019", "'") in _OPENERS:
        if parts[0].casefold() in _ASKS:
            return None
        del parts[0]
    while parts and parts[-1].casefold() in _OPENERS:
        del parts[-1]
    if not parts or not parts[0][0].isupper():
        return None
    if parts[1:2] == ["of"] and singular(parts[0].casefold()) in _OF_SOMEBODY:
        return None
    if len(parts) == 1 and parts[0].casefold() in _NO_NAMES:
        return None
    return " ".join(parts)
