"""ChatGPT's export: conversations are trees, of which the branch shown last is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np

from retrieval.errors import InvalidInput
from retrieval.imports.files import ImportFile
from retrieval.imports.json_values import conversations, keys_of_parts
from retrieval.imports.records import (
    ImportContext,
    Records,
    SkippedRecord,
    Turns,
    list_of,
    mapping_of,
    source_id,
    text_of,
    text_of_part,
)

FILES = ("conversations*.json",)

_SPEAKERS = {"user": "user", "assistant": "ChatGPT"}
_SPOKEN = ("text", "multimodal_text")
"""Types of spoken content; others are code, tools' output, thoughts and settings."""

_MARKERS = re.compile(
    "\ue200([^\ue200-\ue202]*)\ue202?([^\ue200\ue201]*)\ue201|[\ue200-\ue206]|【\\d+[^【】†]*†[^【】]*】"
)
"""Markers of names, links and a tool's sources, as kind and content; and stray marker characters."""


@dataclass(frozen=True, slots=True)
class _Said:
    """A message with a text; `time` is None if the export has none."""

    place: str
    id: str
    speaker: str
    text: str
    time: datetime | None


def recognise(source: ImportFile, context: ImportContext) -> bool:
    """Whether the conversations have a `mapping` of nodes."""
    return any("mapping" in keys["item"] for keys in keys_of_parts(source, FILES))


def read(source: ImportFile, context: ImportContext) -> Records:
    """The messages of user and assistant, conversation by conversation."""
    return conversations(source, FILES, context, _conversation)


def _conversation(conversation: Mapping[str, Any], place: str, context: ImportContext) -> Records:
    mapping = mapping_of(conversation.get("mapping"))
    key = conversation.get("conversation_id") or conversation.get("id") or f"{conversation.get('create_time')}"
    said: list[_Said] = []
    for node_id in _branch(mapping, text_of(conversation.get("current_node"))):
        item = _message(mapping_of(mapping[node_id]), node_id, place, context)
        if isinstance(item, _Said):
            said.append(item)
        elif item is not None:
            yield item
    title = text_of(conversation.get("title"))
    start = _time(conversation.get("create_time"), context)
    turns = Turns("chatgpt")
    for item, time in zip(said, _interpolated([item.time for item in said], start), strict=True):
        yield turns.record(
            item.place,
            id=source_id("chatgpt", key, item.id),
            text=item.text,
            speaker=item.speaker,
            session_id=source_id("chatgpt", key),
            created_at=time,
            metadata={"conversation": title},
        )


def _branch(mapping: Mapping[str, Any], current: str) -> Sequence[str]:
    """The nodes from the root to the current one, as far back as there is no cycle or missing parent.

    Without a current node, the branch of the last node without children.
    """
    if current not in mapping:
        current = next((id_ for id_ in reversed(list(mapping)) if not mapping_of(mapping[id_]).get("children")), "")
    branch: dict[str, None] = {}
    while current in mapping and current not in branch:
        branch[current] = None
        current = text_of(mapping_of(mapping[current]).get("parent"))
    return list(reversed(branch))


def _message(node: Mapping[str, Any], node_id: str, place: str, context: ImportContext) -> _Said | SkippedRecord | None:
    """A node's message, or why it is skipped; None for a node without one."""
    message = mapping_of(node.get("message"))
    if not message:
        return None
    place = f"{place}, node {node_id}"
    role = text_of(mapping_of(message.get("author")).get("role"))
    content = mapping_of(message.get("content"))
    kind = content.get("content_type")
    if mapping_of(message.get("metadata")).get("is_visually_hidden_from_conversation"):
        return SkippedRecord(place=place, reason="hidden message")
    if role not in _SPEAKERS:
        return SkippedRecord(place=place, reason=f"{role or 'nameless'} message")
    if kind not in _SPOKEN or message.get("recipient", "all") != "all":
        return SkippedRecord(place=place, reason="tool call, code or thought")
    text = _MARKERS.sub(_shown, "\n".join(filter(None, map(text_of_part, list_of(content.get("parts")))))).strip()
    if not text:
        return SkippedRecord(place=place, reason="message without text")
    return _Said(
        place, str(message.get("id") or node_id), _SPEAKERS[role], text, _time(message.get("create_time"), context)
    )


def _shown(marker: re.Match[str]) -> str:
    """The text in place of a marker: a link's label, an entity's name, nothing for a tool's sources."""
    kind, rest = marker[1], marker[2]
    if kind == "url":
        return str(rest.partition("\ue202")[0])
    if kind == "entity":
        with suppress(msgspec.DecodeError):
            return "".join(msgspec.json.decode(rest, type=list[str])[1:2])
    return ""


def _time(value: Any, context: ImportContext) -> datetime | None:
    """A time; a broken or absurd one counts as missing, to be interpolated."""
    try:
        return context.time(value) or None
    except InvalidInput:
        context.notes["times that could not be read"] += 1
        return None


def _interpolated(times: Sequence[datetime | None], start: datetime | None) -> list[datetime | None]:
    """The times, with missing ones spread evenly between their neighbours, or set to the nearest or the start."""
    known = {index: time.timestamp() for index, time in enumerate(times) if time is not None}
    if not known:
        return [start] * len(times)
    seconds = np.interp(range(len(times)), [*known], [*known.values()]).tolist()
    return [time or datetime.fromtimestamp(between, UTC) for time, between in zip(times, seconds, strict=True)]
