"""Zep's and Graphiti's graphs: facts with the time of their validity, summaries of nodes, and episodes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from retrieval.errors import InvalidInput
from retrieval.imports.files import FilePart, ImportFile
from retrieval.imports.json_values import keys_in, keys_of_parts, objects_at, records_of
from retrieval.imports.records import (
    ImportContext,
    Record,
    Records,
    SkippedRecord,
    content_id,
    list_of,
    mapping_of,
    memory_record,
    source_id,
    text_naming,
    text_of,
)

FILES = ("*.json", "*.jsonl")

_PLACES = {f"{name}.item" for name in ("edges", "facts", "nodes", "entities", "episodes", "items")}
_HEAD = re.compile(r"^([^:\n]{1,60}): (?=\s*\S)", re.MULTILINE)
"""The beginning of a turn in an episode: `Ana: `."""

_SIGNS = {"labels", "source_description", "valid_at", "reference_time", "episode_uuids", "entity_edges"}

_ROLES = frozenset({"user", "human", "assistant", "ai", "system"})

_FIRST = datetime.min.replace(tzinfo=UTC)

_Node = tuple[str, str]


def recognise(source: ImportFile, context: ImportContext) -> bool:
    """Whether there are edges between nodes, nodes with a summary, or episodes."""
    found = (keys[place] for keys in keys_of_parts(source, FILES) for place in ("item", "", *_PLACES))
    return any(
        own >= {"source_node_uuid", "fact"} or ("uuid" in own and own & {"summary", "content"} and own & _SIGNS)
        for own in found
    )


def read(source: ImportFile, context: ImportContext) -> Records:
    """Facts and summaries as memories, episodes as messages; facts name their nodes by the nodes' names."""
    nodes: dict[str, _Node] = {}
    episodes = _Episodes()
    first_reading = ImportContext(zone=context.zone)
    for part in source.parts(*FILES):
        with suppress(InvalidInput):  # the second reading reports it
            for entry in _entries(part, first_reading):
                if _is_episode(entry):
                    episodes.note(entry, first_reading)
                elif "fact" not in entry:
                    nodes[text_of(entry.get("uuid"))] = text_of(entry.get("name")), _label(entry.get("labels"))

    def memories(entry: Mapping[str, Any], place: str) -> Records:
        if _is_episode(entry):
            yield from _episode(entry, place, episodes, context)
        else:
            yield _fact(entry, place, nodes, context) if "fact" in entry else _node(entry, place, context)

    for part in source.parts(*FILES):
        yield from records_of(part, "entry", _entries(part, context), memories)


class _Episodes:
    """Collects from all episodes their order and the names that speak, as these precede turns.

    An episode of several turns is split at lines that begin with such a name: a role, a name that begins an episode or
    lines in several, or one found both before and after the first speaker of an episode speaks again. Others, as in
    "Eggs: twelve", are part of the text.
    """

    def __init__(self) -> None:
        self._sessions: defaultdict[str, list[tuple[datetime, str, int]]] = defaultdict(list)
        self._speakers: set[str] = set()
        self._frequent: Counter[str] = Counter()

    def note(self, entry: Mapping[str, Any], context: ImportContext) -> None:
        """Take account of an episode."""
        names = [head[1].strip() for head in _HEAD.finditer(_content(entry))]
        self._speakers.update(names[:1])
        if again := [place for place, name in enumerate(names) if name == names[0]][1:]:
            self._speakers.update({*names[: again[-1]]} & {*names[again[0] :]})
        self._frequent.update({*names})
        most_turns = max(1, len(names))
        self._sessions[_session(entry)].append((_sort_key(entry, context), text_of(entry.get("uuid")), most_turns))

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each episode's first turn in its session, by the episode's id."""
        places = {}
        for episodes in self._sessions.values():
            place = 0
            for _, uuid, turns in sorted(episodes):
                places[uuid] = place
                place += turns
        return places

    def turns(self, content: str) -> list[tuple[str, str]]:
        """Speakers and texts; one without a speaker if the content begins with no name."""
        heads = [head for head in _HEAD.finditer(content) if self._is_speaker(head[1].strip())]
        if not heads or heads[0].start() > 0:
            return [("", content)]
        ends = [*(head.start() for head in heads[1:]), len(content)]
        said = [(head[1].strip(), content[head.end() : end].strip()) for head, end in zip(heads, ends, strict=True)]
        return [(speaker, text) for speaker, text in said if text]

    def _is_speaker(self, name: str) -> bool:
        return name.casefold() in _ROLES or name in self._speakers or self._frequent[name] > 1


def _entries(part: FilePart, context: ImportContext) -> Iterator[Mapping[str, Any]]:
    """All nodes, edges and episodes: in lists by name, in one list, or one per line."""
    keys = keys_in(part)
    places = _PLACES if any(keys[place] for place in _PLACES) else {"item"} if keys["item"] else {""}
    return objects_at(part, places, context)


def _fact(entry: Mapping[str, Any], place: str, nodes: Mapping[str, _Node], context: ImportContext) -> Record:
    """An edge: true from `valid_at` until `invalid_at`, or until it was found to be superseded.

    Without `valid_at` it is true from when it was told; if it was over by then, at no time.
    """
    text = text_of(entry.get("fact")).strip()
    if not text:
        return SkippedRecord(place=place, reason="fact without text")
    ends = []
    for end in ("source", "target"):
        name, label = nodes.get(text_of(entry.get(f"{end}_node_uuid")), ("", _label(entry.get(f"{end}_node_labels"))))
        ends.append((text_of(entry.get(f"{end}_node_name")) or name, label))
    named = all(name for name, _ in ends)
    told = context.time(_said_at(entry))
    over = context.time(entry.get("invalid_at")) or context.time(entry.get("expired_at"))
    relation = {"source": ends[0][0], "type": text_of(entry.get("name")) or "related_to", "target": ends[1][0]}
    return memory_record(
        place,
        id=text_of(entry.get("uuid")) or content_id("zep", text, entry.get("valid_at")),
        text=text,
        created_at=min(told, over) if told and over else told,
        expires_at=over,
        entities=[{"name": name, "type": label} for name, label in ends] if named else None,
        relations=[relation] if named else None,
        metadata=_metadata(entry),
    )


def _node(entry: Mapping[str, Any], place: str, context: ImportContext) -> Record:
    name, summary = text_of(entry.get("name")).strip(), text_of(entry.get("summary")).strip()
    if not name or not summary:
        return SkippedRecord(place=place, reason="node without summary")
    return memory_record(
        place,
        id=text_of(entry.get("uuid")) or content_id("zep", name),
        text=text_naming(name, summary),
        title=name,
        created_at=context.time(entry.get("created_at")),
        entities=[{"name": name, "type": _label(entry.get("labels"))}],
        metadata=_metadata(entry),
    )


def _episode(entry: Mapping[str, Any], place: str, episodes: _Episodes, context: ImportContext) -> Records:
    """The turns of an episode; the first has its id."""
    content = _content(entry)
    if not content or entry.get("source") == "json":
        yield SkippedRecord(place=place, reason="episode of JSON" if content else "episode without text")
        return
    speaker = _speaker(entry)
    is_talk = not speaker and entry.get("source", "message") == "message"
    uuid = text_of(entry.get("uuid"))
    first = episodes.positions.get(uuid)
    turns = episodes.turns(content) if is_talk else [(speaker, content)]
    episode_id = uuid or content_id("zep", turns[0][1], _said_at(entry))
    for number, (name, text) in enumerate(turns):
        yield memory_record(
            place,
            id=f"{episode_id}#{number}" if number else episode_id,
            text=text,
            kind="message",
            speaker=name,
            session_id=_session(entry),
            position=None if first is None else first + number,
            created_at=context.time(_said_at(entry)),
            metadata=_metadata(entry),
        )


def _content(entry: Mapping[str, Any]) -> str:
    return text_of(entry.get("content")).strip()


def _speaker(entry: Mapping[str, Any]) -> str:
    """The speaker; an episode's own name counts only beside a role."""
    role = _first_text(entry, "role_name", "role", "role_type")
    return _first_text(entry, "name") or role if role else ""


def _is_episode(entry: Mapping[str, Any]) -> bool:
    return "content" in entry and "fact" not in entry


def _session(entry: Mapping[str, Any]) -> str:
    names = ("thread_id", "thread_uuid", "session_id", "group_id", "user_id", "graph_id", "graph_uuid")
    session = _first_text(entry, *names)
    return source_id("zep", session) if session else "zep"


def _said_at(entry: Mapping[str, Any]) -> str:
    return _first_text(entry, "valid_at", "reference_time", "created_at")


def _first_text(entry: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that has a text; "" if none has."""
    return next(filter(None, (text_of(entry.get(name)) for name in names)), "")


def _sort_key(entry: Mapping[str, Any], context: ImportContext) -> datetime:
    """The time of an episode, as zones may differ; episodes without a time come first."""
    with suppress(InvalidInput):  # the second reading reports it
        return context.time(_said_at(entry)) or _FIRST
    return _FIRST


def _label(given: Any) -> str:
    """The most specific label: every node has `Entity`."""
    labels = [label for label in list_of(given) if isinstance(label, str) and label != "Entity"]
    return labels[0].lower() if labels and labels[0] else "thing"


def _metadata(entry: Mapping[str, Any]) -> dict[str, Any]:
    own = mapping_of(entry.get("metadata") or entry.get("episode_metadata"))
    kept = ("group_id", "graph_uuid", "source_description", "episodes", "episode_uuids", "attributes")
    return {**own, **{name: entry[name] for name in kept if entry.get(name)}}
