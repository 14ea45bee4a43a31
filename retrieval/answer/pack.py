"""The context pack: the best memories that fit a token budget, cited, in one text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from msgspec import UNSET

from graph.stopwords import ENGLISH_FUNCTION_WORDS
from retrieval.answer.pack_formats import LAYOUTS, Layout, PackCandidate, Section, citation
from retrieval.answer.snippet import ELLIPSIS
from retrieval.answer.token_counter import surely_exceeds
from retrieval.answer.utterances import is_empty
from retrieval.ranking.diversity import source_of
from retrieval.text.normalized_text import wording
from retrieval.types.search import DroppedItem, PackFormat, PackItem, PackOrder

OVER_BUDGET = "over_budget"
SOURCE_CAP = "source_cap"
SAID_BEFORE = "in_messages"
EMPTY = "empty"
NOT_RELEVANT = "not_relevant"
DUPLICATE_OF = "duplicate_of:"

LONGEST_SHARE = 6
"""A memory may take 1 / `LONGEST_SHARE` of the budget; a longer one is shown as an excerpt."""

LEAST_LONGEST = 64
"""Tokens that a memory may always take."""

LEAST_EXCERPT = 16
"""Fewest tokens for which an excerpt is tried."""

MOST_RELATED = 6
"""Most entities on the line of related ones."""

SAME_SUBJECT = 0.5
"""A fact about the same thing has more than this share of the shorter one's content words in common."""

Shorten = Callable[[PackCandidate, int], str | None]
"""Shortens a memory's text to a number of tokens; returns it whole if it is short enough, None if nothing fits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextPack:
    """A rendered pack, never above the budget; its text is empty if nothing fits.

    The items are in the order shown, and their `tokens` count the entry alone. `related` are the entities other
    than speakers that several items mention, most mentioned first.
    """

    context: str
    tokens_used: int
    items: list[PackItem]
    dropped: list[DroppedItem]
    related: list[str]


def pack(
    candidates: Sequence[PackCandidate],
    *,
    max_tokens: int,
    format: PackFormat,
    order: PackOrder,
    count: Callable[[str], int],
    shorten: Shorten = lambda memory, _: memory.text,
    source_cap: int | None = None,
    holds: Callable[[str], bool] = lambda _: False,
) -> ContextPack:
    """Fill the budget greedily by relevance and render the chosen memories under headings.

    A memory that does not fit is skipped; smaller ones after it may still fit. If one needs another turn to be
    understood, that turn is included too, unless both do not fit; small talk that needs none is left out. The budget
    covers the whole text with headings and citations. The text is counted again when complete: if it costs more than
    its parts, say by the times of facts, the least relevant are removed. `order` arranges the sections, by relevance or
    oldest first, and does not affect the choice. The last line names related entities, if it fits.

    The candidates are best first, with unique ids. `count` counts the tokens of a text and never returns fewer than
    `surely_exceeds` assumes; `source_cap` is the most memories of one document or session, None for no cap; `holds`
    tells whether the conversation already contains a text, so that no excerpt is repeated.
    """
    layout = LAYOUTS[format]
    dropped = [
        DroppedItem(id=duplicate, reason=f"{DUPLICATE_OF}{candidate.id}")
        for candidate in candidates
        for duplicate in candidate.duplicates
    ]
    chosen = _Chosen(layout, max_tokens, count, shorten, holds)
    per_source: Counter[tuple[str, str]] = Counter()
    for candidate in candidates:
        source = source_of(candidate.document_id, candidate.session_id)
        if candidate.id in chosen:
            pass
        elif source_cap is not None and source and per_source[source] >= source_cap:
            dropped.append(DroppedItem(id=candidate.id, reason=SOURCE_CAP))
        elif _is_small_talk(candidate):
            dropped.append(DroppedItem(id=candidate.id, reason=EMPTY))
        elif reason := chosen.add(candidate):
            dropped.append(DroppedItem(id=candidate.id, reason=reason))
        elif source:
            per_source[source] += 1
    asked_for = {candidate.id for candidate in candidates}
    shown = chosen.entries
    while shown:
        parts = [*layout.parts(arranged(shown, order))]
        texts = [text for _, text in parts]
        context = layout.joined(texts)
        tokens_used = count(context)
        if tokens_used > max_tokens:
            removed = max(len(shown) * (tokens_used - max_tokens) // tokens_used, 1)
            dropped += [DroppedItem(id=one.id, reason=OVER_BUDGET) for one in shown[-removed:] if one.id in asked_for]
            shown = shown[:-removed]
            continue
        related = _related(shown)
        if related and tokens_used + count(layout.separator + layout.related(related)) <= max_tokens:
            with_related = layout.joined([*texts, layout.related(related)])
            if (tokens := count(with_related)) <= max_tokens:
                context, tokens_used = with_related, tokens
        needed_by = {one.needs.id: one.id for one in shown if one.needs is not None}
        entries = [(one, text) for one, text in parts if one is not None]
        items = [
            PackItem(
                id=one.id,
                tokens=count(text),
                citation=citation(number),
                excerpt=one.excerpt or UNSET,
                needed_by=UNSET if one.id in asked_for else needed_by.get(one.id, UNSET),
            )
            for number, (one, text) in enumerate(entries, 1)
        ]
        here = {item.id for item in items}  # includes needed turns that were dropped on their own
        dropped = [each for each in dropped if each.id not in here]
        return ContextPack(context=context, tokens_used=tokens_used, items=items, dropped=dropped, related=related)
    return ContextPack(context="", tokens_used=0, items=[], dropped=dropped, related=[])


def longest_entry(max_tokens: int) -> int:
    """The most tokens of an entry that is no excerpt, in a pack of `max_tokens`."""
    return max(LEAST_LONGEST, max_tokens // LONGEST_SHARE)


def _is_small_talk(memory: PackCandidate) -> bool:
    """Whether it is a chat turn without content that answers nothing; "No." in a document is an answer."""
    is_turn = not (memory.is_fact or memory.document_id or memory.kind == "chunk")
    return is_turn and memory.needs is None and not memory.answers and is_empty(memory.said)


class _Sized(NamedTuple):
    """An entry and its tokens."""

    entry: PackCandidate
    tokens: int


class _Chosen:
    """The entries chosen so far, best first, and the tokens left."""

    def __init__(
        self,
        layout: Layout,
        max_tokens: int,
        count: Callable[[str], int],
        shorten: Shorten,
        holds: Callable[[str], bool],
    ) -> None:
        self.entries: list[PackCandidate] = []
        self._layout = layout
        self._count, self._shorten, self._holds = count, shorten, holds
        self._separator = count(layout.separator)
        self._left = max_tokens - count(layout.joined([]))
        self._longest = longest_entry(max_tokens)
        self._ids: set[str] = set()
        self._sections: set[object] = set()

    def __contains__(self, id_: str) -> bool:
        return id_ in self._ids

    def add(self, candidate: PackCandidate) -> str | None:
        """Take a memory, with the turn it needs if possible; returns the reason if it is not taken."""
        short = self._shortened(candidate)
        if short is None:
            return OVER_BUDGET
        if self._has_been_said(short):
            return SAID_BEFORE
        needed = None
        if candidate.needs is not None and candidate.needs.id not in self._ids:
            needed = self._shortened(candidate.needs)
        if needed is not None and self._has_been_said(needed):
            needed = None
        if (needed is not None and self._take(short, needed)) or self._take(short):
            return None
        return OVER_BUDGET

    def _has_been_said(self, sized: _Sized) -> bool:
        """Whether it is an excerpt that the conversation already contains."""
        return sized.entry.excerpt and self._holds(sized.entry.said)

    def _shortened(self, candidate: PackCandidate) -> _Sized | None:
        """The memory, as an excerpt if its text is long; None if not even that fits."""
        if self._left <= 0:
            return None
        if not surely_exceeds(candidate.text, self._longest):
            whole = self._sized(candidate)
            if whole.tokens <= self._longest:
                return whole
        beside = self._separator + self._sized(replace(candidate, text=ELLIPSIS)).tokens + self._heading(candidate)
        if (longest := min(self._longest, self._left - beside)) < LEAST_EXCERPT:
            return None
        text = self._shorten(candidate, longest)
        if text is None:
            return None
        return self._sized(candidate if text == candidate.text else replace(candidate, text=text, excerpt=True))

    def _sized(self, entry: PackCandidate) -> _Sized:
        return _Sized(entry, self._count(self._layout.entry(entry, len(self.entries) + 1)))

    def _heading(self, entry: PackCandidate) -> int:
        """The tokens of its section's heading and ending; 0 if the section is already there."""
        return 0 if Section.key(entry) in self._sections else self._count(self._layout.frame(entry))

    def _take(self, *entries: _Sized) -> bool:
        """Take all entries or none."""
        cost = 0
        opened = []
        for entry, tokens in entries:
            cost += self._separator + tokens
            if (section := Section.key(entry)) not in opened:
                opened.append(section)
                cost += self._heading(entry)
        if cost > self._left:
            return False
        self._left -= cost
        self._sections.update(opened)
        self.entries += [entry for entry, _ in entries]
        self._ids.update(entry.id for entry, _ in entries)
        return True


def _related(shown: Sequence[PackCandidate]) -> list[str]:
    """The entities that several memories mention, most common first, except speakers, named with their turns."""
    speakers = {one.speaker.casefold() for one in shown if one.speaker}
    counts = Counter(name for one in shown for name in dict.fromkeys(one.entities) if name.casefold() not in speakers)
    return [name for name, mentions in counts.most_common(MOST_RELATED) if mentions > 1]


def arranged(chosen: Sequence[PackCandidate], order: PackOrder) -> list[Section]:
    """The chosen memories, best first, in sections: facts, then sessions and documents with their entries in order."""
    sections: dict[object, Section] = {}
    for candidate in chosen:
        key = Section.key(candidate)
        sections.setdefault(key, Section(*key[:3])).entries.append(candidate)
    for section in sections.values():
        if section.kind == "facts":
            section.entries[:] = _facts(section.entries)
        if section.kind == "document":  # a changed piece may be newer than those after it
            section.entries.sort(key=lambda one: (one.place, one.time.replace(tzinfo=None)))
        elif section.kind != "facts" or order == "time":
            section.entries.sort(key=lambda one: (one.time.replace(tzinfo=None), one.place))
    found = sorted(sections.values(), key=lambda section: section.kind != "facts")
    if order == "time":
        found.sort(key=lambda section: (section.kind != "facts", section.entries[0].time.replace(tzinfo=None)))
    return found


def _facts(facts: Sequence[PackCandidate]) -> list[PackCandidate]:
    """Facts, best first, with those about the same thing together, newest first, and timed if of one day.

    Superseded facts come last within such a group, and groups of nothing else come after the others.
    """
    groups: list[list[PackCandidate]] = []
    leaders: list[frozenset[str]] = []
    for fact in facts:
        words = wording(fact.text, fact.speaker).vocabulary - ENGLISH_FUNCTION_WORDS
        for group, leader in zip(groups, leaders, strict=True):
            if len(words & leader) > SAME_SUBJECT * min(len(words), len(leader)):
                group.append(fact)
                break
        else:
            groups.append([fact])
            leaders.append(words)
    for group in groups:
        group.sort(key=lambda fact: (not fact.superseded, fact.last_time.replace(tzinfo=None)), reverse=True)
    groups.sort(key=lambda group: group[0].superseded)  # what replaces them may use other words
    return [fact for group in groups for fact in _timed(group)]


def _timed(group: Sequence[PackCandidate]) -> Iterator[PackCandidate]:
    """Facts about the same thing; those that only the time of day tells apart are shown with it."""
    moments = {fact.time.replace(second=0, microsecond=0) for fact in group}
    per_day = Counter(moment.date() for moment in moments)
    return (replace(fact, timed=per_day[fact.time.date()] > 1) for fact in group)
