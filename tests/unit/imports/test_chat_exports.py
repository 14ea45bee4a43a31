"""Peculiarities of ChatGPT, Claude, Slack, Telegram and Discord."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from retrieval.errors import InvalidInput
from tests.exports import (
    TELEGRAM_PAGE,
    as_json,
    chatgpt_conversation,
    claude_conversation,
    node,
    said,
    slack,
    talk,
    telegram_chat,
    zipped,
)
from tests.importing import Imported

TURNS = talk(("user", "ChatGPT"), 7)


def conversation(**changes: Any) -> dict[str, Any]:
    return chatgpt_conversation(TURNS, "c") | changes


def test_only_the_branch_of_the_current_node_is_read() -> None:
    read = Imported(as_json([conversation()]))
    assert read.format == "chatgpt"
    assert read.texts == [turn.text for turn in TURNS]
    assert set(read.skips.values()) == {"hidden message", "tool message"}
    other = Imported(as_json([conversation(current_node="left")]))
    assert other.texts == ["This was asked another way afterwards."]


def test_missing_times_lie_between_their_neighbours() -> None:
    """And at the conversation's time where no message has one."""
    times = {memory.position: memory.created_at for memory in Imported(as_json([conversation()])).memories}
    assert times[5] == TURNS[4].time + (TURNS[6].time - TURNS[4].time) / 2
    mapping = {
        "a": node("a", None, said("user", "Hello", None, id="m")),
        "b": node("b", "a", said("user", "You", None)),
    }
    (first, second) = Imported(as_json([conversation(mapping=mapping, current_node="b")])).memories
    assert first.created_at == second.created_at == TURNS[0].time
    mapping["c"] = node("c", "b", said("user", "Late", TURNS[6].time))
    late = Imported(as_json([conversation(mapping=mapping, current_node="c")])).memories
    assert {memory.created_at for memory in late} == {TURNS[6].time}


def test_trees_without_an_end_or_a_root_are_read_as_far_as_they_go() -> None:
    ring = {
        "a": node("a", "b", said("user", "one", TURNS[0].time, id="1")),
        "b": node("b", "a", said("assistant", "two", TURNS[1].time, id="2")),
    }
    assert Imported(as_json([conversation(mapping=ring, current_node="b")])).texts == ["one", "two"]
    orphan = {"b": node("b", "gone", said("user", "alone", TURNS[1].time, id="2"))}
    assert Imported(as_json([conversation(mapping=orphan, current_node="b")])).texts == ["alone"]
    assert Imported(as_json([conversation(mapping=orphan, current_node=None)])).texts == ["alone"]
    chain = {str(n): node(str(n), str(n - 1), said("user", f"{n}", TURNS[0].time, id=str(n))) for n in range(20_000)}
    assert len(Imported(as_json([conversation(mapping=chain, current_node="19999")])).texts) == 20_000


def test_names_and_links_of_chatgpts_answers_are_kept_and_its_references_are_not() -> None:
    name = '\ue200entity\ue202["people","Ana \\"Nani\\" Silva","chef"]\ue201'
    link = "\ue200url\ue202Casa Verde\ue202https://casa.example\ue201"
    answer = f"\ue203Ask {name}\ue204 at {link}.\ue200cite\ue202turn0search1\ue201\ue206 \ue200entity\ue202[\ue201"
    mapping = {"a": node("a", None, said("assistant", answer, TURNS[0].time, id="m"))}
    read = Imported(as_json([conversation(mapping=mapping, current_node="a")]))
    assert read.texts == ['Ask Ana "Nani" Silva at Casa Verde.']


def test_json_nested_without_end_is_refused_and_what_precedes_it_is_in() -> None:
    data = as_json([conversation()])[:-1] + b"," + b'[{"mapping":' * 100_000
    read = Imported(data)
    assert len(read.texts) == len(TURNS)
    assert read.errors == {"after conversation 1": "broken JSON: it is nested deeper than 200 levels"}


def test_claudes_thoughts_and_tools_are_left_out() -> None:
    read = Imported(as_json([claude_conversation(talk(("user", "Claude"), 4), "k")]))
    assert read.format == "claude"
    assert read.texts == [turn.text for turn in talk(("user", "Claude"), 4)]
    assert list(read.skips.values()) == ["message without text"]
    old = {"uuid": "k", "name": "", "chat_messages": [{"uuid": "m", "sender": "human", "text": "Older exports"}]}
    assert Imported(as_json([old])).texts == ["Older exports"]


def test_a_broken_time_refuses_its_message_alone() -> None:
    export = claude_conversation(talk(("user", "Claude"), 4), "k")
    export["chat_messages"][1]["created_at"] = "yesterday"
    read = Imported(as_json([export]))
    assert read.errors == {"conversation 1, message 2": "cannot read the time 'yesterday'"}
    assert len(read.memories) == 3


def test_slack_mentions_and_links_are_readable() -> None:
    text = "<@U01> &amp; <@U99|guest>: see <#C01|> <https://a.example/b|the list> <https://c.example> <!here> a &lt; b"
    message = {"type": "message", "user": "U02", "text": text, "ts": "1706651407.000100"}
    files = {
        "users.json": as_json([{"id": "U01", "name": "nora", "profile": {"display_name": "Nora"}}]),
        "channels.json": as_json([{"id": "C01", "name": "garden"}]),
        "garden/2024-01-30.json": as_json([message]),
    }
    (memory,) = Imported(zipped(files)).memories
    assert memory.text == ("@Nora & @guest: see #garden the list (https://a.example/b) https://c.example @here a < b")
    assert memory.speaker == "U02"


def test_slack_threads_are_sessions_of_their_own() -> None:
    memories = Imported(slack()).memories
    threads = [memory for memory in memories if ":thread:" in (memory.session_id or "")]
    assert len(threads) == 44
    assert {memory.position for memory in threads} == {0, 1}


def test_a_broken_day_of_slack_does_not_stop_the_others() -> None:
    message = {"type": "message", "user": "U02", "text": "Hello", "ts": "1706651407.000100"}
    days = {
        "a/2024-01-30.json": as_json([message]) + b"]",
        "a/2024-01-31.json": as_json([message | {"text": "Two", "ts": "1706751407.0"}]),
    }
    read = Imported(zipped(days))
    assert read.texts == ["Hello", "Two"]
    assert list(read.errors) == ["a/2024-01-30.json, after message 1"]


def test_telegrams_chat_is_read_alone_or_in_an_account() -> None:
    chat = telegram_chat(talk(count=4), 71)
    alone = Imported(as_json(chat))
    account = Imported(
        as_json({"personal_information": {}, "chats": {"list": [chat, telegram_chat(talk(count=2), 8)]}})
    )
    assert alone.memories == account.memories[:4]
    assert [memory.session_id for memory in account.memories[4:]] == ["telegram:8:2024-01-30"] * 2
    assert set(alone.skips.values()) == {"notice (create_group)", "medium without text"}


def test_telegrams_pages_are_refused_with_the_way_out() -> None:
    """Telegram's default; as a document, a chat would not have speakers. Next to the JSON they are ignored."""
    pages = {"ChatExport/messages.html": TELEGRAM_PAGE, "ChatExport/messages2.html": TELEGRAM_PAGE}
    for content in (TELEGRAM_PAGE, zipped(pages)):
        with pytest.raises(InvalidInput, match="export the chat again, with the format JSON"):
            Imported(content)
    assert Imported(zipped({**pages, "result.json": as_json(telegram_chat(talk(count=4), 71))})).memories


def test_days_are_those_of_the_users_zone() -> None:
    late = talk(count=3)  # from 21:50 UTC
    sessions = [memory.session_id for memory in Imported(as_json(telegram_chat(late, 7))).memories]
    assert sessions[0] == "telegram:7:2024-01-30"
    tokyo = Imported(as_json(telegram_chat(late, 7)), zone=ZoneInfo("Asia/Tokyo")).memories
    assert {memory.session_id for memory in tokyo} == {"telegram:7:2024-01-31"}
    assert tokyo[0].created_at == late[0].time
    assert late[1].time - late[0].time == timedelta(minutes=47)
    chat = telegram_chat(late, 7)
    chat["messages"][1] |= {"date_unixtime": "253402297200000"}  # in milliseconds; has no day there
    chat["messages"][2] |= {"date": "9999-12-31T23:00:00Z", "date_unixtime": ""}
    read = Imported(as_json(chat), zone=ZoneInfo("Asia/Tokyo"))
    last = {2: "253402297200000", 3: "9999-12-31T23:00:00Z"}
    assert read.errors == {f"message {at}": f"cannot read the time {time!r}" for at, time in last.items()}
    assert len(read.memories) == 1


def test_a_text_that_json_cannot_hold_is_mended() -> None:
    export = claude_conversation(talk(("user", "Claude"), 1), "k")
    data = json.dumps([export]).replace("Turn 0", r"Turn\u0000 0")
    assert Imported(data).texts == [talk(("user", "Claude"), 1)[0].text]


def test_a_chat_without_a_name_has_none() -> None:
    """As the saved messages, which follow other chats."""
    saved = {"type": "saved_messages", "id": 5, "messages": telegram_chat(talk(count=1), 5)["messages"]}
    account = {"personal_information": {}, "chats": {"list": [telegram_chat(talk(count=1), 71), saved]}}
    assert [memory.metadata for memory in Imported(as_json(account)).memories] == [{"chat": "Chat 71"}, {}]


def test_references_of_chatgpts_tools_are_left_out() -> None:
    mapping = {
        "a": node("a", None, said("assistant", "Rain\ue200cite\ue202turn0search1\ue201 tomorrow【4†source】.", None))
    }
    (memory,) = Imported(as_json([conversation(mapping=mapping, current_node="a")])).memories
    assert (memory.text, memory.id) == ("Rain tomorrow.", "chatgpt:c:a")


def test_a_discord_channel_in_several_files_is_one_session() -> None:
    """As DiscordChatExporter divides a large one."""

    def part(*numbers: int) -> bytes:
        messages = [
            {"id": f"{at}", "type": "Default", "timestamp": f"2024-03-04T10:{at}:00+00:00", "content": f"Message {at}.",
             "author": {"name": "Ana"}} for at in numbers
        ]  # fmt: skip
        return as_json({"guild": {"name": "g"}, "channel": {"id": "7", "name": "c"}, "messages": messages})

    files = {"c [part 10].json": part(13), "c [part 2].json": part(12), "c.json": part(10, 11)}
    read = Imported(zipped(files), "discord")
    assert len({memory.session_id for memory in read.memories}) == 1
    assert read.texts == [f"Message {at}." for at in (10, 11, 12, 13)]
    assert [memory.position for memory in read.memories] == [0, 1, 2, 3]
