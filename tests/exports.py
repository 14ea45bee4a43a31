"""Exports of other programs in their real formats, all with the same invented conversation."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

START = datetime(2024, 1, 30, 21, 50, 7, tzinfo=UTC)

_TOPICS = ("the allotment", "a leaking tap", "Sunday's choir", "the train to Évora", "a lost umbrella", "tomato seeds")


@dataclass(frozen=True)
class TalkTurn:
    """A turn; `number` counts from 0."""

    number: int
    speaker: str
    text: str
    time: datetime

    @property
    def uuid(self) -> str:
        """A unique id."""
        return str(UUID(int=self.number + 1))


def talk(speakers: Sequence[str] = ("Nora", "Ivo"), count: int = 220) -> list[TalkTurn]:
    """A conversation over some days, with a turn every 47 minutes."""
    return [
        TalkTurn(
            number,
            speakers[number % len(speakers)],
            f"Turn {number} is about {_TOPICS[number % len(_TOPICS)]}, said {speakers[number % len(speakers)]}.",
            START + timedelta(minutes=47 * number),
        )
        for number in range(count)
    ]


def iso(time: datetime) -> str:
    """A time in the format of most exports."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """A zip of these files, in their order."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def as_json(value: Any) -> bytes:
    """Indented JSON in UTF-8."""
    return json.dumps(value, indent=1, ensure_ascii=False).encode()


def node(id_: str, parent: str | None, message: dict[str, Any] | None, children: Iterable[str] = ()) -> dict[str, Any]:
    """A node of ChatGPT's tree."""
    return {"id": id_, "parent": parent, "children": list(children), "message": message}


def said(role: str, text: str, time: datetime | None, **fields: Any) -> dict[str, Any]:
    """A message of ChatGPT's tree."""
    return {
        "id": fields.pop("id", None),
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": time.timestamp() if time else None,
        "content": {"content_type": "text", "parts": [text]},
        "status": "finished_successfully",
        "metadata": {},
        "recipient": "all",
        **fields,
    }


def chatgpt_conversation(turns: Sequence[TalkTurn], id_: str) -> dict[str, Any]:
    """A tree with a hidden system message, a tool's answer, an abandoned branch, and no time in every fifth."""
    mapping = {"root": node("root", None, None, ["hidden"])}
    hidden: dict[str, Any] = {"is_visually_hidden_from_conversation": True}
    mapping["hidden"] = node("hidden", "root", said("system", "", None, id="hidden", metadata=hidden))
    parent = "hidden"
    for index, turn in enumerate(turns):
        time = turn.time if index % 5 or index == 0 else None
        role = "user" if turn.speaker == "user" else "assistant"
        mapping[turn.uuid] = node(turn.uuid, parent, said(role, turn.text, time, id=turn.uuid))
        parent = turn.uuid
    mapping["tool"] = node("tool", parent, said("tool", "42 results", turns[-1].time, id="tool"))
    left = said("user", "This was asked another way afterwards.", turns[0].time, id="left")
    mapping["left"] = node("left", "hidden", left)
    return {
        "title": f"Talk {id_}",
        "create_time": turns[0].time.timestamp(),
        "update_time": turns[-1].time.timestamp(),
        "mapping": mapping,
        "moderation_results": [],
        "current_node": "tool",
        "conversation_id": id_,
        "id": id_,
        "is_archived": False,
    }


def chatgpt() -> bytes:
    """ChatGPT's zip with two conversations."""
    turns = talk(("user", "ChatGPT"))
    conversations = [chatgpt_conversation(turns[:110], "c-1"), chatgpt_conversation(turns[110:], "c-2")]
    return zipped({"chat.html": b"<html></html>", "conversations.json": as_json(conversations), "user.json": b"{}"})


def claude_conversation(turns: Sequence[TalkTurn], id_: str) -> dict[str, Any]:
    """A conversation of Claude's export, with thoughts and tools, and an empty message."""
    messages: list[dict[str, Any]] = []
    for turn in turns:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": turn.text, "citations": []}]
        if turn.speaker == "Claude":
            blocks.insert(0, {"type": "thinking", "thinking": "Let me think of seeds."})
            blocks.insert(1, {"type": "tool_use", "name": "web_search", "input": {"query": "seeds"}})
        messages.append(
            {
                "uuid": turn.uuid,
                "text": f"```This block is not supported``` {turn.text}",
                "content": blocks,
                "sender": "human" if turn.speaker == "user" else "assistant",
                "created_at": iso(turn.time),
                "updated_at": iso(turn.time),
                "attachments": [],
                "files": [],
            }
        )
    empty = {"uuid": f"empty-{id_}", "text": "", "content": [], "sender": "human", "created_at": iso(turns[-1].time)}
    return {
        "uuid": id_,
        "name": f"Talk {id_}",
        "summary": "",
        "created_at": iso(turns[0].time),
        "updated_at": iso(turns[-1].time),
        "account": {"uuid": "a-1"},
        "chat_messages": [*messages, empty],
    }


def claude() -> bytes:
    """Claude's conversations.json."""
    turns = talk(("user", "Claude"))
    return as_json([claude_conversation(turns[:100], "k-1"), claude_conversation(turns[100:], "k-2")])


def slack() -> bytes:
    """A workspace's zip: one channel, of which every tenth turn begins a thread that the next one answers."""
    users = {"Nora": "U01", "Ivo": "U02"}
    days: dict[str, list[dict[str, Any]]] = {}
    thread: str | None = None
    for turn in talk():
        ts = f"{turn.time.timestamp():.6f}"
        message: dict[str, Any] = {"type": "message", "user": users[turn.speaker], "text": turn.text, "ts": ts}
        if turn.number % 10 == 0:
            thread = message["thread_ts"] = ts
            message["reply_count"] = 1
        elif turn.number % 10 == 1:
            message["thread_ts"] = thread
        days.setdefault(f"{turn.time:%Y-%m-%d}", []).append(message)
    first = next(iter(days.values()))
    first.append({"type": "message", "subtype": "channel_join", "user": "U01", "text": "joined", "ts": "1.0"})
    first.append({"type": "message", "subtype": "bot_message", "bot_id": "B1", "text": "Build done", "ts": "2.0"})
    names: list[dict[str, Any]] = [
        {"id": id_, "name": name.lower(), "profile": {"display_name": name, "real_name": f"{name} Example"}}
        for name, id_ in users.items()
    ]
    files = {"users.json": as_json(names), "channels.json": as_json([{"id": "C01", "name": "garden"}])}
    return zipped(files | {f"garden/{day}.json": as_json(messages) for day, messages in days.items()})


def whatsapp_ios(day_first: bool = True) -> bytes:
    """The zip of iOS: brackets, seconds, left-to-right marks, twelve hours with a narrow no-break space."""
    shape = "%d/%m/%y" if day_first else "%m/%d/%y"
    lines = [f"[{START.strftime(shape)}, 9:50:00\u202fPM] Nora: \u200eMessages and calls are end-to-end encrypted."]
    for turn in talk():
        clock = turn.time.strftime("%I:%M:%S\u202f%p").lstrip("0")
        lines.append(f"[{turn.time.strftime(shape)}, {clock}] {turn.speaker}: {turn.text}")
        if turn.number % 50 == 0:
            lines.append(f"\u200e[{turn.time.strftime(shape)}, {clock}] {turn.speaker}: \u200eimage omitted")
    return zipped({"_chat.txt": "\r\n".join(lines).encode()})


def whatsapp_android() -> bytes:
    """Android's text: 24 hours, no seconds, every seventh message in two lines."""
    lines = [f"{START:%d/%m/%Y, %H:%M} - Messages and calls are end-to-end encrypted."]
    for turn in talk():
        text = turn.text if turn.number % 7 else turn.text.replace(" is about", "\nis about")
        lines.append(f"{turn.time:%d/%m/%Y, %H:%M} - {turn.speaker}: {text}")
        if turn.number % 50 == 0:
            lines.append(f"{turn.time:%d/%m/%Y, %H:%M} - {turn.speaker}: <Media omitted>")
    return "\n".join(lines).encode()


def telegram_chat(turns: Sequence[TalkTurn], id_: int) -> dict[str, Any]:
    """A chat of Telegram's export: a service message, a photo, and texts of entities."""
    messages: list[dict[str, Any]] = [
        {"id": 1, "type": "service", "date": "2024-01-30T21:50:00", "actor": "Nora", "action": "create_group"}
    ]
    for turn in turns:
        about = turn.text.partition(" is ")
        text: Any = [{"type": "bold", "text": about[0]}, about[1], about[2]] if turn.number % 3 == 0 else turn.text
        messages.append(
            {
                "id": turn.number + 10,
                "type": "message",
                "date": turn.time.strftime("%Y-%m-%dT%H:%M:%S"),
                "date_unixtime": str(int(turn.time.timestamp())),
                "from": turn.speaker,
                "from_id": f"user{turn.number % 2}",
                "text": text,
                "text_entities": [],
            }
        )
    messages.append({"id": 9_000, "type": "message", "date": "2024-02-20T10:00:00", "photo": "p.jpg", "text": ""})
    return {"name": f"Chat {id_}", "type": "private_group", "id": id_, "messages": messages}


TELEGRAM_PAGE = b"""<!DOCTYPE html>
<html><head><meta charset="utf-8"/><title>Exported Data</title></head><body onload="CheckLocation();">
<div class="page_wrap"><div class="page_header"><div class="text bold">Ines</div></div>
<div class="page_body chat_page"><div class="history">
<div class="message default clearfix" id="message1"><div class="body">
<div class="pull_right date details" title="30.01.2024 21:50:00 UTC+00:00">21:50</div>
<div class="from_name">Ines</div><div class="text">Good evening.</div>
</div></div></div></div></div></body></html>
"""


def telegram() -> bytes:
    """The result.json of an account with two chats."""
    turns = talk()
    chats = [telegram_chat(turns[:120], 71), telegram_chat(turns[120:], 72)]
    return as_json({"about": "Here is the data.", "personal_information": {}, "chats": {"about": "", "list": chats}})


def discord() -> bytes:
    """DiscordChatExporter's file of a channel, with a join and a bot."""
    messages: list[dict[str, Any]] = [
        {"id": "1", "type": "GuildMemberJoin", "timestamp": iso(START), "content": "", "author": {"name": "ivo"}},
        {"id": "2", "type": "Default", "timestamp": iso(START), "content": "!", "author": {"name": "b", "isBot": True}},
    ]
    messages += [
        {
            "id": str(10**18 + turn.number),
            "type": "Reply" if turn.number % 4 == 1 else "Default",
            "timestamp": turn.time.isoformat(),
            "timestampEdited": None,
            "isPinned": False,
            "content": turn.text,
            "author": {"id": "5", "name": turn.speaker.lower(), "nickname": turn.speaker, "isBot": False},
            "attachments": [],
        }
        for turn in talk()
    ]
    guild = {"id": "3", "name": "Garden"}
    channel = {"id": "4", "type": "GuildTextChat", "name": "seeds"}
    return as_json({"guild": guild, "channel": channel, "messages": messages, "messageCount": len(messages)})


def mbox() -> bytes:
    """A mailbox of threads of ten mails, answers with quotations and signatures, every sixth of HTML alone."""
    mails = []
    for turn in talk():
        first = turn.number - turn.number % 10
        headers = [
            f"From {turn.speaker.lower()}@example.org {turn.time:%a %b %d %H:%M:%S %Y}",
            f"Message-ID: <{turn.number}@example.org>",
            f"From: {turn.speaker} <{turn.speaker.lower()}@example.org>",
            "To: list@example.org",
            f"Subject: {'Re: ' * (turn.number != first)}=?utf-8?q?Thread_{first}_of_=C3=89vora?=",
            f"Date: {turn.time:%a, %d %b %Y %H:%M:%S +0000}",
        ]
        if turn.number != first:
            headers.append(f"References: <{first}@example.org> <{turn.number - 1}@example.org>")
        if turn.number % 6 == 5:
            headers.append("Content-Type: text/html; charset=utf-8")
            body = f"<html><style>p{{}}</style><p>{turn.text}</p><blockquote>earlier words</blockquote></html>"
        else:
            headers.append("Content-Type: text/plain; charset=utf-8")
            body = f"{turn.text}\n\nOn Mon, 1 Jan 2024 at 09:00, Someone wrote:\n> earlier words\n\n-- \n{turn.speaker}"
        mails.append("\n".join([*headers, "Content-Transfer-Encoding: 8bit", "", body, "", ""]))
    return "".join(mails).encode()


def jsonl() -> bytes:
    """Lines with the usual names."""
    rows = (
        {"author": turn.speaker, "content": turn.text, "timestamp": iso(turn.time), "conversation": "c", "mood": "calm"}
        for turn in talk()
    )
    return "\n".join(map(json.dumps, rows)).encode()


def csv_rows() -> bytes:
    """Rows with semicolons, headers with capitals, and texts of two lines."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=";")
    writer.writerow(["Message ID", "Author", "Content", "Sent at", "Channel"])
    for turn in talk():
        writer.writerow([turn.uuid, turn.speaker, turn.text, turn.time.strftime("%Y-%m-%d %H:%M:%S"), "garden"])
    return buffer.getvalue().encode("utf-8-sig")


def mem0() -> bytes:
    """The answer of mem0's get_all, with relations of its graph."""
    results = [
        {
            "id": turn.uuid,
            "memory": turn.text,
            "hash": f"{turn.number:032x}",
            "metadata": {"room": "garden"},
            "created_at": turn.time.isoformat(),
            "updated_at": None,
            "user_id": turn.speaker,
            "categories": ["hobbies"],
        }
        for turn in talk()
    ]
    relations = [{"source": "Nora", "relationship": "sings_in", "target": "choir"}]
    return as_json({"results": results, "relations": relations})


def mcp() -> bytes:
    """The file of MCP's reference memory server: an entity or a relation on each line."""
    entities = [
        {
            "type": "entity",
            "name": name,
            "entityType": "Person",
            "observations": [turn.text for turn in talk() if turn.speaker == name],
        }
        for name in ("Nora", "Ivo")
    ]
    relation = {"type": "relation", "from": "Nora", "to": "choir", "relationType": "sings_in"}
    return "\n".join(map(json.dumps, [*entities, relation])).encode()


def zep() -> bytes:
    """A graph: edges, of which every tenth is no longer valid, nodes, and episodes of two threads."""
    turns = talk()
    nodes = [
        {"uuid": f"n{name}", "name": name, "labels": ["Entity", "Person"], "summary": f"{name} grows tomatoes."}
        for name in ("Nora", "Ivo")
    ]
    nodes.append({"uuid": "nchoir", "name": "choir", "labels": ["Entity"], "summary": ""})
    edges = [
        {
            "uuid": turn.uuid,
            "group_id": "g",
            "name": "TALKED_OF",
            "fact": turn.text,
            "source_node_uuid": f"n{turn.speaker}",
            "target_node_uuid": "nchoir",
            "created_at": iso(turn.time + timedelta(days=1)),
            "valid_at": iso(turn.time),
            "invalid_at": iso(turn.time + timedelta(days=30)) if turn.number % 10 == 0 else None,
            "expired_at": None,
            "episodes": ["e1"],
        }
        for turn in turns
    ]
    episodes = [
        {
            "uuid": f"e{turn.number}",
            "content": f"{turn.speaker}: {turn.text}",
            "source": "message",
            "source_description": "chat",
            "group_id": f"thread-{turn.number % 2}",
            "valid_at": iso(turn.time),
            "created_at": iso(turn.time),
        }
        for turn in reversed(turns)
    ]
    return as_json({"edges": edges, "nodes": nodes, "episodes": episodes})


def hindsight() -> bytes:
    """The list of a bank's memories, of which one was invalidated."""
    items: list[dict[str, Any]] = [
        {
            "id": turn.uuid,
            "text": turn.text,
            "context": "garden",
            "fact_type": "world" if turn.number % 2 else "experience",
            "occurred_start": iso(turn.time),
            "occurred_end": iso(turn.time + timedelta(hours=1)),
            "mentioned_at": iso(turn.time + timedelta(days=1)),
            "entities": f"{turn.speaker}, choir" if turn.number % 2 else [turn.speaker, "choir"],
            "tags": ["allotment"],
            "metadata": {},
            "state": "valid",
        }
        for turn in talk()
    ]
    items.append({**items[0], "id": "wrong", "text": "Ivo is a bishop.", "state": "invalidated"})
    return as_json({"items": items, "total": len(items), "limit": 1_000, "offset": 0})


EXPORTS: dict[str, Callable[[], bytes]] = {
    "chatgpt": chatgpt,
    "claude": claude,
    "slack": slack,
    "whatsapp": whatsapp_ios,
    "whatsapp-android": whatsapp_android,
    "telegram": telegram,
    "discord": discord,
    "mbox": mbox,
    "jsonl": jsonl,
    "csv": csv_rows,
    "mem0": mem0,
    "mcp": mcp,
    "zep": zep,
    "hindsight": hindsight,
}
"""By format; with a variant after a hyphen."""
