"""Telegram Desktop's result.json: one chat, or all chats of an account, message by message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from retrieval.errors import InvalidInput
from retrieval.imports.files import HEAD_BYTES, FilePart, ImportFile
from retrieval.imports.json_values import keys_of_parts, records_of, values_at
from retrieval.imports.records import (
    ImportContext,
    Record,
    Records,
    SkippedRecord,
    Turns,
    mapping_of,
    source_id,
    text_of,
)

FILES = ("result.json",)

_PAGES = "messages*.html"
_PAGE_SIGN = b'class="page_body chat_page"'

_CHATS = ("", "chats.list.item.", "left_chats.list.item.")
_PLACES = {f"{chat}{name}" for chat in _CHATS for name in ("id", "name", "messages.item")}


class _Chat(NamedTuple):
    """The current chat; its name, if it has one, and its id come before its messages."""

    name: str = ""
    id: str = ""


def recognise(source: ImportFile, context: ImportContext) -> bool:
    """Whether it has the keys of a chat's messages, or of an account's chats; or is HTML, which `read` refuses."""
    for keys in keys_of_parts(source, FILES):
        if (keys["messages.item"] >= {"date", "type"} and "type" in keys[""]) or "personal_information" in keys[""]:
            return True
        if "list" in keys["chats"] | keys["left_chats"] or keys[""] >= {"about", "contacts"}:
            return True
    return _is_of_pages(source)


def _is_of_pages(source: ImportFile) -> bool:
    """Whether it was exported as HTML, which is what Telegram offers first."""
    parts = [*source.parts(*FILES, _PAGES)]
    return bool(parts) and all(_PAGE_SIGN in part.open().read(HEAD_BYTES) for part in parts)


def read(source: ImportFile, context: ImportContext) -> Records:
    """The messages, chat by chat; a day is a session. Raises InvalidInput if they were exported as HTML."""
    if _is_of_pages(source):
        raise InvalidInput("these are Telegram's pages in HTML: export the chat again, with the format JSON")
    turns = Turns("telegram")
    for part in source.parts(*FILES):
        values = _messages(part, context)
        yield from records_of(part, "message", values, lambda value, at: [_message(*value, at, turns, context)])


def _messages(part: FilePart, context: ImportContext) -> Iterator[tuple[Mapping[str, Any], _Chat]]:
    chat = _Chat()
    for where, value in values_at(part, _PLACES, context):
        if where.endswith("messages.item"):
            yield mapping_of(value), chat
        elif where.endswith("name"):
            chat = _Chat(name=text_of(value))
        else:
            chat = _Chat(name="" if chat.id else chat.name, id=str(value))


def _message(message: Mapping[str, Any], chat: _Chat, place: str, turns: Turns, context: ImportContext) -> Record:
    if chat.name:
        place = f"{place} ({chat.name}, id {message.get('id')})"
    if message.get("type") != "message":
        return SkippedRecord(place=place, reason=f"notice ({message.get('action') or message.get('type')})")
    text = _text(message.get("text")).strip()
    if not text:
        return SkippedRecord(place=place, reason="medium without text")
    created_at = context.time(message.get("date_unixtime") or message.get("date"))
    return turns.record(
        place,
        id=source_id("telegram", chat.id, message.get("id")),
        text=text,
        speaker=text_of(message.get("from")) or text_of(message.get("from_id")),
        session_id=source_id("telegram", chat.id, context.day(created_at)),
        created_at=created_at,
        metadata={"chat": chat.name, "forwarded_from": message.get("forwarded_from")},
    )


def _text(value: Any) -> str:
    """The text of a string, or of a list of strings and entities; a link keeps its target."""
    if isinstance(value, str):
        return value
    pieces = []
    for piece in value if isinstance(value, list) else []:
        entity = mapping_of(piece)
        said = piece if isinstance(piece, str) else text_of(entity.get("text"))
        target = text_of(entity.get("href"))
        pieces.append(f"{said} ({target})" if target and target != said else said)
    return "".join(pieces)
