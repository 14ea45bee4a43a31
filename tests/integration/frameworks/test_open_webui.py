"""The filter of Open WebUI, loaded and called as Open WebUI does."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import trivet
import trivet.integrations
from tests.serving import on_a_port, settings_for

SOURCE = Path(trivet.integrations.__file__).with_name("open_webui.py").read_text(encoding="utf-8")
ANA: dict[str, Any] = {"id": "8a1d", "name": "Ana", "role": "user"}
TOLD = {"id": "u1", "role": "user", "content": "My sister Ines moved to Porto in May.", "timestamp": 1_747_764_000}
ANSWERED = {
    "id": "a1",
    "role": "assistant",
    "content": '<details type="reasoning" done="true">\n> A secret thought.\n</details>\nHow does Ines like Porto?',
    "timestamp": 1_747_764_003,
}
ASKED = {"role": "user", "content": "Where does my sister live?"}


class OpenWebUI:
    """Load a filter as Open WebUI does: execute its text, set its valves, pass the arguments its methods name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, valves: dict[str, Any]) -> None:
        module = ModuleType("function_trivet")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(SOURCE, "<string>", "exec", dont_inherit=True), module.__dict__)  # noqa: S102
        self.filter = module.__dict__["Filter"]()
        self.filter.valves = self.filter.Valves(**valves)
        self.events: list[dict[str, Any]] = []

    async def call(self, name: str, body: dict[str, Any], chat_id: str, **user_valves: bool) -> dict[str, Any]:
        async def emit(event: dict[str, Any]) -> None:
            self.events.append(event)

        offered = {
            "__user__": {**ANA, "valves": self.filter.UserValves(**user_valves)},
            "__metadata__": {"chat_id": chat_id, "message_id": "m", "user_id": ANA["id"]},
            "__event_emitter__": emit,
            "__chat_id__": chat_id,
            "__id__": "trivet",
        }
        handler = getattr(self.filter, name)
        named = {key: value for key, value in offered.items() if key in inspect.signature(handler).parameters}
        answer: dict[str, Any] = await handler(body=body, **named)
        return answer

    async def ask(self, messages: list[Any], chat_id: str, **user_valves: bool) -> list[Any]:
        """The messages that the model gets."""
        asked = await self.call("inlet", {"model": "m", "messages": messages}, chat_id, **user_valves)
        answered: list[Any] = asked["messages"]
        return answered

    async def answer(self, messages: list[Any], chat_id: str, **user_valves: bool) -> None:
        body = {"model": "m", "messages": messages, "chat_id": chat_id, "session_id": "socket", "id": "a1"}
        assert await self.call("outlet", body, chat_id, **user_valves) == body


def test_it_names_what_open_webui_shows() -> None:
    lines = SOURCE.splitlines()
    assert lines[0] == '"""'
    front = dict(line.split(": ", 1) for line in lines[1:5])
    assert front["title"] == "Trivet"
    assert "requirements" not in front
    assert not re.search(r"^\s*(from|import) (trivet|retrieval)", SOURCE, re.MULTILINE)


async def test_another_chat_recalls_what_was_said(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with on_a_port(settings_for(database_url, api_key="schlüssel")) as url:
        page = OpenWebUI(monkeypatch, {"base_url": f"{url}/", "api_key": "schlüssel", "max_tokens": 300})
        assert await page.ask([TOLD], "c1") == [TOLD]
        for _ in range(2):
            await page.answer([TOLD, ANSWERED], "c1")
        with trivet.Client(url, "schlüssel", "open-webui-8a1d") as client:
            stored = [(each.speaker, each.text, each.session_id, each.position) for each in client.get_all()]
            assert [each.created_at.year for each in client.get_all()] == [2025, 2025]
        assert sorted(stored) == [
            ("Ana", "My sister Ines moved to Porto in May.", "c1", 0),
            ("assistant", "How does Ines like Porto?", "c1", 1),
        ]
        before = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
        first, second, memories, question = await page.ask([*before, ASKED], "c2")
        assert ([first, second], question) == (before, ASKED)
        assert memories["role"] == "system"
        assert "Porto" in memories["content"]
        pictured = {"role": "user", "content": [{"type": "text", "text": ASKED["content"]}, {"type": "image_url"}]}
        assert "Porto" in (await page.ask([pictured], "c2"))[0]["content"]
        assert page.events == []


async def test_a_chat_gets_nothing_that_it_holds(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with on_a_port(settings_for(database_url)) as url:
        page = OpenWebUI(monkeypatch, {"base_url": url})
        await page.answer([TOLD, ANSWERED], "c1")
        # In the same chat, even if it no longer has them; in another one with the same messages.
        assert await page.ask([ASKED], "c1") == [ASKED]
        copied = [TOLD, {"role": "assistant", "content": "How does Ines like Porto?"}, ASKED]
        assert await page.ask(copied, "c2") == copied
        assert page.events == []


async def test_users_choose_and_temporary_chats_are_forgotten(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on_a_port(settings_for(database_url)) as url:
        page = OpenWebUI(monkeypatch, {"base_url": url})
        await page.answer([TOLD, ANSWERED], "local:c1")
        await page.answer([TOLD, ANSWERED], "c1", remember=False)
        assert await page.ask([ASKED], "c2") == [ASKED]
        await page.answer([TOLD, ANSWERED], "c1")
        assert await page.ask([ASKED], "c2", recall=False) == [ASKED]
        assert len(await page.ask([ASKED], "c2")) == 2
        assert await page.ask([{"role": "system", "content": "x"}], "c2") == [{"role": "system", "content": "x"}]


async def test_a_chat_goes_on_without_a_server(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    page = OpenWebUI(monkeypatch, {"base_url": "http://127.0.0.1:9"})
    assert await page.ask([ASKED], "c1") == [ASKED]
    await page.answer([TOLD, ANSWERED], "c1")
    assert [event["data"]["description"] for event in page.events] == [
        "Memory is unavailable; the chat goes on without it."
    ] * 2
    assert "http://127.0.0.1:9/v1/namespaces/open-webui-8a1d/memories" in caplog.text
