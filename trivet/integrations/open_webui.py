"""
title: Trivet
author: The Trivet contributors
description: Long-term memory: recalls what earlier chats said about a question, and stores what is said.
license: Apache-2.0
"""  # noqa: D205, D212, D415  # Open WebUI reads these lines, and nothing but this file

import logging
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx
from pydantic import BaseModel, Field

_log = logging.getLogger(__name__)

_HIDDEN = re.compile(r"<details\b.*?</details>\s*", re.DOTALL)
"""What Open WebUI adds to an answer besides what was said: reasoning, tool calls."""

_MOST_MESSAGES = 1_000
_MOST_CHARS = 60_000

Emitter = Callable[[dict[str, Any]], Awaitable[None]]


class Filter:
    """Adds memories of other chats to a question before a model gets it, and stores both it and the answer.

    Each user has a namespace. Temporary chats are not stored. While the server does not answer, chats go on without
    memory, and the user sees a notice.
    """

    class Valves(BaseModel):
        """Settings of the administrator."""

        base_url: str = Field(default="http://127.0.0.1:8321", description="Address of the Trivet server")
        api_key: str = Field(default="", description="Its key, if it needs one")
        namespace_prefix: str = Field(default="open-webui-", description="Namespace of a user, before their id")
        max_tokens: int = Field(default=1024, ge=1, le=200_000, description="Maximum tokens of memories in a prompt")
        timeout_s: float = Field(default=10.0, gt=0, description="Seconds to wait for the server")
        priority: int = Field(default=0, description="Filters with lower numbers come first")

    class UserValves(BaseModel):
        """Settings of a user."""

        recall: bool = Field(default=True, description="Recall what was said in other chats")
        remember: bool = Field(default=True, description="Store what is said in this and other chats")

    def __init__(self) -> None:
        self.valves = self.Valves()

    async def inlet(
        self,
        body: dict[str, Any],
        __user__: dict[str, Any],
        __metadata__: dict[str, Any] | None = None,
        __event_emitter__: Emitter | None = None,
    ) -> dict[str, Any]:
        """Put memories before the user's last message, none of them from this chat."""
        messages = body.get("messages", [])
        last = max((place for place, each in enumerate(messages) if each["role"] == "user"), default=None)
        if last is None or not _user_valves(self, __user__).recall or not _said(messages[last]):
            return body
        talk = [{"role": each["role"], "content": _said(each)[-_MOST_CHARS:]} for each in messages]
        chat_id = (__metadata__ or {}).get("chat_id") or body.get("chat_id")
        request = {
            "messages": talk[-_MOST_MESSAGES:],
            "max_tokens": self.valves.max_tokens,
            "exclude": {"session_id": [chat_id] if chat_id else []},
        }
        pack = await self._ask("context", request, __user__, __event_emitter__)
        if pack and pack["items"]:
            memories = {"role": "system", "content": pack["context"]}
            body["messages"] = [*messages[:last], memories, *messages[last:]]
        return body

    async def outlet(
        self, body: dict[str, Any], __user__: dict[str, Any], __event_emitter__: Emitter | None = None
    ) -> dict[str, Any]:
        """Store the user's last message and what follows it, with ids, so that a second time changes nothing."""
        messages, chat_id = body.get("messages", []), body.get("chat_id") or ""
        if not chat_id or chat_id.startswith("local") or not _user_valves(self, __user__).remember:
            return body
        last = max((place for place, each in enumerate(messages) if each["role"] == "user"), default=0)
        memories = [
            {
                "id": f"{chat_id}:{each.get('id') or place}",
                "text": said[:_MOST_CHARS],
                "kind": "message",
                "speaker": __user__.get("name") or "user" if each["role"] == "user" else each["role"],
                "session_id": chat_id,
                "position": place,
                "created_at": _time(each),
                "tags": ["open-webui"],
            }
            for place, each in enumerate(messages)
            if place >= last and each["role"] in ("user", "assistant") and (said := _said(each))
        ]
        if memories:
            await self._ask("memories", {"memories": memories}, __user__, __event_emitter__)
        return body

    async def _ask(
        self, verb: str, request: dict[str, Any], user: dict[str, Any], emitter: Emitter | None
    ) -> dict[str, Any] | None:
        """The server's answer; None if it fails, which is logged and shown to the user."""
        namespace = quote(f"{self.valves.namespace_prefix}{user['id']}", safe="")
        url = f"{self.valves.base_url.rstrip('/')}/v1/namespaces/{namespace}/{verb}"
        headers = {b"Authorization": f"Bearer {self.valves.api_key}".encode()} if self.valves.api_key else {}
        try:
            async with httpx.AsyncClient(timeout=self.valves.timeout_s, headers=headers) as http:
                response = await http.post(url, json=request)
            response.raise_for_status()
            answer: dict[str, Any] = response.json()
        except (httpx.HTTPError, ValueError) as exc:
            detail = exc.response.text if isinstance(exc, httpx.HTTPStatusError) else repr(exc)
            _log.warning("no memory from %r: %s", httpx.URL(url), detail)  # which hides a password
            if emitter is not None:
                told = "Memory is unavailable; the chat goes on without it."
                await emitter({"type": "status", "data": {"description": told, "done": True}})
            return None
        return answer


def _user_valves(installed: Filter, user: dict[str, Any]) -> Any:
    return user.get("valves") or installed.UserValves()


def _said(message: dict[str, Any]) -> str:
    """The text of a message, whose content may be a list of texts and images."""
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "\n".join(part.get("text") or "" for part in content)
    return _HIDDEN.sub("", content).replace("\x00", "").strip()


def _time(message: dict[str, Any]) -> str | None:
    """When a message was sent, if it says so in seconds since 1970."""
    seconds = message.get("timestamp")
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
