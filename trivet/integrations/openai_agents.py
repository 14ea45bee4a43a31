"""OpenAI Agents SDK: a session whose items are memories."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any
from uuid import uuid4

from trivet import AsyncClient, NotFound
from trivet.integrations import extra, storable
from trivet.integrations.either_client import every

with extra("openai-agents"):
    from agents import SessionSettings, TResponseInputItem
    from agents.memory.session import SessionABC
    from agents.memory.session_settings import resolve_session_limit

ITEM = "openai_agents"
"""Metadata key of an item's JSON, and prefix of the tag that names the session."""

PART_CHARS = 30_000
"""Longest piece of an item's JSON in one memory: escaped once more it is at most 60,000 bytes of metadata."""

UNSPOKEN = "chunk"
"""Kind of the memories of calls, outputs and the like, which belong to no conversation."""


class TrivetSession(SessionABC):
    """The history of a conversation, which searches and context packs of its namespace find, too.

    Items come back as they were added. What users and assistants say becomes messages of the session `session_id`, with
    the role as their speaker; the rest, such as tool calls, is stored with them as chunks without a text of its own.
    All methods raise `TrivetError`.
    """

    def __init__(
        self,
        session_id: str,
        client: AsyncClient,
        *,
        namespace: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        """Keep a conversation.

        Args:
            session_id: 1 to 240 characters.
            client: of a server or in process; it is not closed.
            namespace: None for the client's.
            session_settings: a `limit` for calls that have none.
        """
        self.session_id = session_id
        self.session_settings = session_settings
        self._client = client
        self._namespace = namespace
        self._tag = f"{ITEM}:{session_id}"

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The latest `limit` items, or all, oldest first."""
        items = [item for _, item in await self._stored()]
        most = resolve_session_limit(limit, self.session_settings)
        return items if most is None else items[max(0, len(items) - most) :]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items; unless all of them can be JSON, none is stored."""
        # Ids sort in the order of a call's items, and those of a later call come after them.
        call = f"{time.time_ns():020}-{uuid4().hex[:8]}"
        memories = [
            memory for number, item in enumerate(items) for memory in self._memories(f"{call}-{number:05}", item)
        ]
        await self._client.add(memories, namespace=self._namespace)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the last item; None if there is none."""
        while stored := await self._stored():
            item_id, item = stored[-1]
            if await self._client.delete_all(metadata={ITEM: {"item": item_id}}, namespace=self._namespace):
                return item  # otherwise another caller has just removed it
        return None

    async def clear_session(self) -> None:
        """Remove all items."""
        with suppress(NotFound):  # nothing was added yet
            await self._client.delete_all(tags_all=[self._tag], namespace=self._namespace)

    def _memories(self, item_id: str, item: TResponseInputItem) -> Iterator[dict[str, Any]]:
        """The memories of an item: one, unless it is long."""
        content = json.dumps(item)
        said = said_in(item)
        for number, start in enumerate(range(0, len(content), PART_CHARS)):  # a text is never longer than its JSON
            spoken = said[start : start + PART_CHARS].strip()
            conversation = {"kind": "message", "speaker": item["role"], "session_id": self.session_id} if spoken else {}  # type: ignore[typeddict-item]
            yield {
                "id": f"{ITEM}-{item_id}-{number:05}",
                "text": spoken or f"({item.get('type', 'message')})",
                "kind": UNSPOKEN,
                "tags": [self._tag],
                "metadata": {ITEM: {"item": item_id, "json": content[start : start + PART_CHARS]}},
                **conversation,
            }

    async def _stored(self) -> list[tuple[str, TResponseInputItem]]:
        """All items, oldest first, each with its id."""
        stored = every(self._client, tags_all=[self._tag], namespace=self._namespace)
        memories = sorted([memory async for memory in stored], key=lambda memory: memory.id)
        items = []
        for item_id, parts in groupby(memories, key=lambda memory: memory.metadata[ITEM]["item"]):
            try:
                items.append((item_id, json.loads("".join(part.metadata[ITEM]["json"] for part in parts))))
            except ValueError:  # the first parts of one that is being added or removed, or was when that was cut off
                continue
        return items


def said_in(item: Mapping[str, Any] | TResponseInputItem) -> str:
    """What a user or an assistant says in an item, without unstorable characters; empty for other items.

    >>> said_in({"role": "user", "content": [{"type": "input_text", "text": "Hello"}, {"type": "input_image"}]})
    'Hello'
    """
    fields: Mapping[str, Any] = item
    if fields.get("role") not in ("user", "assistant"):
        return ""
    content: str | Sequence[Mapping[str, Any]] = fields.get("content") or ""
    parts = [content] if isinstance(content, str) else [part.get("text") or "" for part in content]
    return storable("\n".join(part for part in parts if part))
