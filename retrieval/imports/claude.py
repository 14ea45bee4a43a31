"""Claude's export: conversations with their messages in order, one conversation in memory at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrieval.errors import InvalidInput
from retrieval.imports.files import ImportFile
from retrieval.imports.json_values import conversations, keys_of_parts
from retrieval.imports.records import (
    ImportContext,
    Records,
    SkippedRecord,
    list_of,
    mapping_of,
    memory_record,
    refused,
    source_id,
    text_of,
)

FILES = ("conversations*.json",)

_SPEAKERS = {"human": "user", "assistant": "Claude"}


def recognise(source: ImportFile, context: ImportContext) -> bool:
    """Whether the conversations have `chat_messages`."""
    return any("chat_messages" in keys["item"] for keys in keys_of_parts(source, FILES))


def read(source: ImportFile, context: ImportContext) -> Records:
    """The messages of both sides, conversation by conversation."""
    return conversations(source, FILES, context, _conversation)


def _conversation(conversation: Mapping[str, Any], place: str, context: ImportContext) -> Records:
    key = text_of(conversation.get("uuid")) or f"{conversation.get('created_at')}"
    title = text_of(conversation.get("name"))
    position = 0
    for index, item in enumerate(list_of(conversation.get("chat_messages")), start=1):
        message, spot = mapping_of(item), f"{place}, message {index}"
        for attached in (*list_of(message.get("attachments")), *list_of(message.get("files"))):
            yield SkippedRecord(place=f"{spot}, {mapping_of(attached).get('file_name')}", reason="attached file")
        text = _text(message)
        if not text:
            yield SkippedRecord(place=spot, reason="message without text")
            continue
        sender = text_of(message.get("sender"))
        try:
            yield memory_record(
                spot,
                id=source_id("claude", key, message.get("uuid") or position),
                text=text,
                kind="message",
                speaker=_SPEAKERS.get(sender, sender),
                session_id=source_id("claude", key),
                position=position,
                created_at=context.time(message.get("created_at")),
                tags=["claude"],
                metadata={"conversation": title} if title else None,
            )
        except InvalidInput as exc:
            yield refused(spot, exc)
        position += 1


def _text(message: Mapping[str, Any]) -> str:
    """The content's texts without thoughts and tools, which the field `text` includes."""
    blocks = [mapping_of(block) for block in list_of(message.get("content"))]
    said = [text_of(block.get("text")) for block in blocks if block.get("type") == "text"]
    return "\n".join(filter(None, said)).strip() or ("" if blocks else text_of(message.get("text")).strip())
