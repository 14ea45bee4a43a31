"""Encodings, zips, times, mails and tables."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import UTC, datetime
from typing import Any
from unittest.mock import ANY

import pytest

from retrieval.errors import InvalidInput
from retrieval.imports import files
from retrieval.imports.files import ImportFile
from retrieval.imports.formats import detect
from retrieval.imports.jsonl import header_of
from retrieval.imports.mbox import said
from retrieval.imports.records import ImportContext, content_id, source_id
from retrieval.lifecycle.export import ExportHeader, header_line
from retrieval.types.namespace import NamespaceSettings
from tests import exports
from tests.counting import calls
from tests.exports import EXPORTS, as_json, claude_conversation, talk, zipped
from tests.importing import Imported

CHAT = "30/01/2024, 21:50 - Núria: Évora é longe\n"


@pytest.mark.parametrize("name", [name for name in EXPORTS if name not in ("chatgpt", "slack", "whatsapp", "mbox")])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32", "cp1252"])
def test_other_encodings_hold_the_same(name: str, encoding: str) -> None:
    text = EXPORTS[name]().decode("utf-8-sig")
    expected, read = Imported(text), Imported(text.encode(encoding))
    assert (read.format, read.memories) == (expected.format, expected.memories)
    assert any("évora" in memory.text.lower() for memory in read.memories)


@pytest.mark.parametrize("row", [{"text": "Évora"}, {"messages": [{"role": "user", "content": "Évora"}]}])
def test_a_list_in_another_encoding_is_noted_once(row: dict[str, Any]) -> None:
    read = Imported(as_json([row]).decode().encode("utf-16"))
    assert (read.format, read.texts, read.notes["files read as utf-16"]) == ("json", ["Évora"], 1)


def test_members_of_zips_may_have_another_encoding() -> None:
    export = as_json([claude_conversation(talk(count=4), "k")])
    read = Imported(zipped({"conversations.json": export.decode().encode("utf-16")}))
    assert read.memories == Imported(export).memories
    assert read.notes["files read as utf-16"] == 1


def test_twice_the_members_of_a_zip_are_twice_the_work() -> None:
    """Slack's exports have a file per channel and day."""

    def opened(count: int) -> int:
        source = ImportFile(io.BytesIO(zipped({f"a/{number}.json": b"[]" for number in range(count)})))
        return calls(lambda: [part.open() for part in source.parts("*.json")])

    assert opened(400) < 2.5 * opened(200)


def test_a_member_of_a_zip_may_have_any_number_in_its_name() -> None:
    names = {f"{'9' * 5_000}.json": "second", "1.json": "first"}
    assert Imported(zipped({name: as_json([{"text": text}]) for name, text in names.items()})).texts == [
        "first",
        "second",
    ]


def test_a_few_broken_bytes_do_not_turn_a_file_into_latin() -> None:
    text = CHAT * 40
    read = Imported(text.encode() + b"30/01/2024, 21:51 - N\xfa: caf\xe9\n")
    assert read.texts == ["Évora é longe"] * 40 + ["caf\ufffd"]
    assert read.notes["files with broken UTF-8"] == 1
    assert Imported((CHAT * 40).encode("latin-1")).texts == ["Évora é longe"] * 40


def damaged(data: bytes, needle: bytes) -> bytes:
    """A zip with a flipped byte in a member's content."""
    at = data.index(needle)
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def test_a_damaged_or_encrypted_member_is_named() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for number in range(2):
            conversation = claude_conversation(talk(count=3 + number), f"unmistakable-{number}")
            archive.writestr(f"conversations-{number}.json", as_json([conversation]))
    read = Imported(damaged(buffer.getvalue(), b"unmistakable-0"))
    assert [memory.session_id for memory in read.memories].count("claude:unmistakable-1") == 4
    assert any("is damaged" in error for error in read.errors.values())
    locked = bytearray(zipped({"conversations.json": as_json([])}))
    for header in (b"PK\x03\x04", b"PK\x01\x02"):
        locked[locked.index(header) + (6 if header[2] == 3 else 8)] |= 1
    with pytest.raises(InvalidInput, match="encrypted"):
        Imported(bytes(locked))


def test_a_truncated_zip_is_refused_in_words() -> None:
    with pytest.raises(InvalidInput, match="zip cannot be opened"):
        Imported(exports.slack()[:-200])


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("2024-01-30T21:50:07Z", (2024, 1, 30, 21, 50, 7)),
        ("2024-01-30T23:50:07+02:00", (2024, 1, 30, 21, 50, 7)),
        ("2024-01-30 21:50:07 UTC", (2024, 1, 30, 21, 50, 7)),
        ("Tue, 30 Jan 2024 21:50:07 +0000", (2024, 1, 30, 21, 50, 7)),
        ("2024-01-30", (2024, 1, 30)),
        (1706651407, (2024, 1, 30, 21, 50, 7)),
        (1706651407000, (2024, 1, 30, 21, 50, 7)),
        ("1706651407.0", (2024, 1, 30, 21, 50, 7)),
        ("20240130", (2024, 1, 30)),
        ("Tue, 30 Jan 2024 13:50:07 PST", (2024, 1, 30, 21, 50, 7)),
        ("Tue, 30 Jan 2024 21:50:07 -0000 (UTC)", (2024, 1, 30, 21, 50, 7)),
        ("30 Jan 2024 23:50:07 +0200 (CEST)", (2024, 1, 30, 21, 50, 7)),
        ("Jan 30, 2024 21:50", (2024, 1, 30, 21, 50)),
    ],
)
def test_times_in_many_shapes(value: object, time: tuple[int, ...]) -> None:
    assert ImportContext().time(value) == datetime(*time, tzinfo=UTC)  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    "value",
    [
        *("soon", "2024-13-01", "2024", 7, 1e300, float("nan"), [1], {"a": 1}, "0001-01-01T00:00:00+14:00"),
        *("Jan 5, 2024 3:04 PM", "12 May 2023 12:30 a.m.", "Fri Jan 05 2024 15:04:05 GMT+0100 (CET)"),
    ],
)
def test_what_is_no_time_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="cannot read the time"):
        ImportContext().time(value)


def test_ids_tell_their_parts_apart_and_fit() -> None:
    assert content_id("a", "x:y", "z") != content_id("a", "x", "y:z")
    assert source_id("slack", "C1", 17) == "slack:C1:17"
    assert len(source_id("slack", "C" * 500)) < 60
    assert source_id("slack", "C" * 500) != source_id("slack", "C" * 501)


MAIL = """From nora@example.org Tue Jan 30 21:50:07 2024
{headers}

{body}
"""


def as_lines(*rows: object) -> bytes:
    return "\n".join(map(json.dumps, rows)).encode()


def mail(headers: str, body: str) -> Imported:
    return Imported(MAIL.format(headers=headers, body=body).encode("latin-1"))


def test_broken_headers_and_unknown_charsets_are_read_as_they_are() -> None:
    read = mail(
        "From: =?utf-8?b?%%%?= <nora@example.org\nDate: soon\nSubject: =?klingon?q?a?=\n"
        "Content-Type: text/plain; charset=klingon",
        "caf\xe9",
    )
    (memory,) = read.memories
    assert memory.text == "café"
    assert memory.created_at == datetime(2024, 1, 30, 21, 50, 7, tzinfo=UTC)  # of the line "From "
    assert memory.session_id is not None


def test_mails_are_not_read_in_the_encoding_of_host_names() -> None:
    """It would take days for a long one."""
    read = mail("Content-Type: text/plain; charset=punycode\nContent-Transfer-Encoding: base64", "dGVhLWJh")
    assert read.texts == ["tea-ba"]


def test_only_the_beginning_of_a_long_header_is_read() -> None:
    """All its parameters would take hours."""
    kind = f"Content-Type: text/plain{';' * 20_000}charset=utf-16"
    assert mail(f"{kind}\nContent-Transfer-Encoding: base64", "dGVhcw==").texts == ["teas"]


@pytest.mark.parametrize(
    ("sender", "name", "address"),
    [
        ("=?utf-8?q?M=C3=BCller=2C_J=C3=BCrgen?= <j@x.org>", "Müller, Jürgen", "j@x.org"),
        ("=?utf-8?q?Nora_=40_Caf=C3=A9?= <n@x.org>", "Nora @ Café", "n@x.org"),
        ('"Müller, Jürgen" <j@x.org>', "Müller, Jürgen", "j@x.org"),
        ("n@x.org", "n@x.org", "n@x.org"),
    ],
)
def test_names_of_senders_may_have_any_letters_and_commas(sender: str, name: str, address: str) -> None:
    (memory,) = Imported(MAIL.format(headers=f"From: {sender}\nSubject: Grüße", body="Hi").encode()).memories
    assert (memory.speaker, memory.metadata["from"], memory.title) == (name, address, "Grüße")


def test_the_text_of_html_alone_is_read_without_quotations() -> None:
    body = "<p>Bread &amp; salt</p><script>x()</script><p>Two<br>lines</p><blockquote>Earlier</blockquote>"
    assert mail("Subject: s\nContent-Type: text/html", body).texts == ["Bread & salt\n\nTwo\nlines"]


def test_attachments_are_not_text() -> None:
    headers = "Subject: s\nContent-Type: multipart/mixed; boundary=x"
    parts = (
        "--x\nContent-Type: text/plain\n\nThe body\n"
        "--x\nContent-Type: text/plain\nContent-Disposition: attachment; filename=a.txt\n\nThe attachment\n"
        "--x\nContent-Type: message/rfc822\nContent-Disposition: attachment\n\nSubject: t\n\nThe words of others\n--x--"
    )
    assert mail(headers, parts).texts == ["The body"]


def test_quotations_and_signatures_are_left_out() -> None:
    assert said("New\n> old\n> older\nNewer\n-- \nNora") == "New\nNewer"
    assert said("New\n\nAm 3. Mai 2021 um 10:00 schrieb Ana\n<ana@example.org>:\n> old") == "New"
    assert said("New\n-----Original Message-----\nFrom: Ana\n\nold") == "New"
    assert said("New\n---------- Forwarded message ---------\nFrom: Ana\n\nold") == "New"
    assert said("New\n-------- Weitergeleitete Nachricht --------\nVon: Ana\n\nold") == "New"
    assert said("New\n\nBegin forwarded message:\n\nFrom: Ana\n\nold") == "New"
    assert said("On Monday I wrote: a letter") == "On Monday I wrote: a letter"


def test_mails_are_ordered_by_date_within_their_thread() -> None:
    later = MAIL.format(
        headers="Message-ID: <b@x>\nReferences: <a@x>\nDate: Tue, 30 Jan 2024 22:00:00 +0000", body="second"
    )
    first = MAIL.format(headers="Message-ID: <a@x>\nDate: Tue, 30 Jan 2024 21:00:00 +0000", body="first")
    positions = {
        memory.text: (memory.session_id, memory.position) for memory in Imported(later + "\n" + first).memories
    }
    assert positions == {"first": ("mbox:<a@x>", 0), "second": ("mbox:<a@x>", 1)}


def test_rows_of_tables_are_refused_one_by_one() -> None:
    read = Imported("author,content,date\nNora,Hello,2024-01-30T21:50:07Z\nIvo,Late,whenever\nIvo,Two\n,,\n")
    assert read.texts == ["Hello"]
    assert read.errors == {
        "line 3": "cannot read the time 'whenever'",
        "line 4": "has 2 columns where the header has 3",
    }
    assert read.skips == {"line 5": "empty row"}
    with pytest.raises(InvalidInput, match="a column twice: date"):
        Imported("author,content,date,date\nNora,Hello,2024-01-30,2024-01-31\n")


def test_lines_with_the_apis_fields_are_memories_as_ever() -> None:
    """Names other than the API's are only guessed if the first line has them."""
    read = Imported('{"id": "a", "text": "One", "kind": "chunk"}\n{"id": "b", "content": "Two"}\n{"text": "3"}\n')
    assert [(memory.id, memory.kind) for memory in read.memories] == [("a", "chunk"), (ANY, "memory")]
    assert list(read.errors) == ["line 2"]
    guessed = Imported('{"content": "One", "role": "user", "x": 1}\nbroken\n{"content": "Two", "role": "user"}\n')
    assert [(memory.speaker, memory.kind, memory.metadata) for memory in guessed.memories] == [
        ("user", "message", {"x": 1}),
        ("user", "message", {}),
    ]
    assert guessed.errors == {"line 2": "is not a JSON object"}


def test_lines_may_have_the_parts_of_chat_models_but_no_other_objects_as_text() -> None:
    parts = [{"type": "text", "text": "One"}, {"type": "image_url"}, "Two"]
    read = Imported(as_lines({"role": "user", "content": parts}, {"role": "user", "content": {"a": 1}}))
    assert read.texts == ["One\nTwo"]
    assert read.errors == {"line 2": "is no text; --map names another column"}
    (memory,) = Imported(as_lines({"body": "One", "user": {"id": 1}, "channel": ["a"]})).memories
    assert (memory.speaker, memory.session_id, memory.metadata) == (None, None, {"user": {"id": 1}, "channel": ["a"]})


def test_a_row_with_a_namespace_is_one_of_a_corpus_unless_it_has_what_that_has_not() -> None:
    """A time or a session would be lost silently."""
    row = {"id": "a", "namespace": "n", "text": "One"}
    assert [memory.kind for memory in Imported(as_lines(row, {**row, "session_id": "s"})).memories] == ["chunk"] * 2
    read = Imported(as_lines({**row, "session_id": "s"}))
    assert read.texts == []
    assert "there is no such field" in read.errors["line 1"]


def test_the_metadata_of_a_row_are_the_memorys() -> None:
    (memory,) = Imported(as_lines({"content": "One", "metadata": {"source": "s", "page": 1}, "page": 2})).memories
    assert memory.metadata == {"source": "s", "page": 2}


def test_a_column_may_have_the_metadata_as_json() -> None:
    """As tables have them, in which a cell is always text."""
    table = 'text,metadata,page\nOne,"{""source"": ""s"", ""tags"": [1]}",2\nTwo,see below,\nThree,"[1]",\n'
    assert [memory.metadata for memory in Imported(table).memories] == [
        {"source": "s", "tags": [1], "page": "2"},
        {"metadata": "see below"},
        {"metadata": "[1]"},
    ]


def test_a_text_with_an_object_on_a_line_is_no_table() -> None:
    text = b'# Hook\n\nSend:\n\n```json\n{"text": "Ines founded Casa Verde."}\n```\n\nThen wait.\n'
    with pytest.raises(InvalidInput, match="none of these formats"):
        detect(ImportFile(io.BytesIO(text)))
    assert detect(ImportFile(io.BytesIO(b'{"text": "Ines founded Casa Verde."}\n{broken\n'))) == "jsonl"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_header_of_an_export_is_read_whole(encoding: str) -> None:
    """In any encoding, and beyond the bytes used to detect a format."""
    aliases = [("ines", f"Nesi {number} {'x' * 200}") for number in range(2_000)]
    header = ExportHeader(trivet_export=1, memories=0, written=0, settings=NamespaceSettings(), aliases=aliases)
    written = header_line(header).decode().encode(encoding)
    assert header_of(ImportFile(io.BytesIO(written))) == header
    assert header_of(ImportFile(io.BytesIO(b'{"text": "One"}\n'))) is None


def test_a_list_of_objects_is_read_as_lines_of_them_are() -> None:
    rows = [{"body": "One", "author": "Ana", "date": "2025-05-20", "page": 1}, {"body": "Two"}]
    read = Imported(json.dumps(rows, indent=2))
    assert read.format == "json"
    assert [(memory.text, memory.speaker, memory.metadata) for memory in read.memories] == [
        ("One", "Ana", {"page": 1}),
        ("Two", None, {}),
    ]
    memories = [{"text": "One", "entities": [{"name": "Ana"}]}, {"text": "Two", "colour": 1}]
    read = Imported(json.dumps(memories))
    assert [memory.entities[0].name for memory in read.memories] == ["Ana"]
    assert "there is no such field" in read.errors["item 2"]
    assert detect(ImportFile(io.BytesIO(b'[{"what": "One"}]')), {"text": "what"}) == "json"


def test_messages_of_a_chat_model_are_one_session() -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "My sister is Ines."}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "assistant", "content": "Noted."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "2", "name": "note", "input": {"text": "Ines"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "2", "content": "Done."}]},
        {"role": "user", "content": [{"type": "image", "source": {}}, {"type": "text", "text": " "}]},
        {"role": "user", "content": "  "},
    ]
    read = Imported(json.dumps(messages))
    turns = [(memory.speaker, memory.text, memory.kind, memory.position) for memory in read.memories]
    assert turns == [("user", "My sister is Ines.", "message", 1), ("assistant", "Noted.", "message", 3)]
    assert len({memory.session_id for memory in read.memories}) == 1
    skipped = [f"item {number}" for number in (1, 3, 5, 6, 7, 8)]
    assert (read.skips, read.errors) == (dict.fromkeys(skipped, "system and tool messages"), {})


def test_conversations_of_a_chat_model_are_sessions() -> None:
    """One per line, as for fine-tuning, in a list, or alone in a file; a conversation's id and time are its turns'."""
    first = {"messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "My sister is Ines."},
        {"role": "assistant", "content": "Noted."},
    ]}  # fmt: skip
    second = {
        "id": "c2",
        "created_at": "2025-05-20T10:00:00Z",
        "messages": [
            {"role": "user", "content": "Hello", "name": "Ana"},
            {"role": "user", "content": "Bye", "timestamp": "2025-05-21T10:00:00Z"},
        ],
    }
    lines = Imported(as_lines(first, {"text": "One"}, first, second))
    assert (lines.format, lines.errors) == ("jsonl", {"line 2": "has no messages"})
    turns = [(memory.speaker, memory.text, memory.kind, memory.position) for memory in lines.memories]
    assert turns[:2] == [("user", "My sister is Ines.", "message", 1), ("assistant", "Noted.", "message", 2)]
    assert turns[4:] == [("Ana", "Hello", "message", 0), ("user", "Bye", "message", 1)]
    sessions = [memory.session_id for memory in lines.memories]
    assert sessions == [sessions[0]] * 2 + [sessions[2]] * 2 + ["c2"] * 2
    assert sessions[0] != sessions[2]
    assert [memory.created_at and memory.created_at.day for memory in lines.memories[4:]] == [20, 21]
    assert lines.skips == dict.fromkeys(("line 1, message 1", "line 3, message 1"), "system and tool messages")
    for whole in ([first, second], second):
        read = Imported(json.dumps(whole, indent=2))
        assert read.format == "json"
        assert [memory.text for memory in read.memories][-2:] == ["Hello", "Bye"]
        assert read.memories[-1].session_id == "c2"


def test_lines_without_ids_are_the_same_wherever_they_stand() -> None:
    first = Imported(as_lines({"text": "One"}, {"text": "One"})).memories
    later = Imported(as_lines({"text": "New"}, {"text": "One"}, {"text": "One"})).memories
    assert [memory.id for memory in later[1:]] == [memory.id for memory in first]
    assert len({memory.id for memory in later}) == 3


@pytest.mark.parametrize("name", EXPORTS)
def test_a_second_reading_gives_the_same_ids(name: str) -> None:
    first, second = Imported(EXPORTS[name]()), Imported(EXPORTS[name]())
    assert first.memories == second.memories
    ids = [memory.id for memory in first.memories]
    assert len(set(ids)) == len(ids)
    assert None not in ids


def test_facts_expire_when_they_were_invalidated() -> None:
    facts = [memory for memory in Imported(exports.zep()).memories if memory.metadata.get("episodes")]
    assert sum(memory.expires_at is not None for memory in facts) == 22


def test_documents_of_langchain_are_rows() -> None:
    rows = [
        {"id": "h1", "metadata": {"source": "cabins.md"}, "page_content": "Cabins are cleaned.", "type": "Document"}
    ]
    for data in (as_json(rows), json.dumps(rows[0])):
        (memory,) = Imported(data).memories
        assert (memory.id, memory.text) == ("h1", "Cabins are cleaned.")
        assert memory.metadata == {"source": "cabins.md", "type": "Document"}


def test_a_single_mail_is_a_mailbox_of_one() -> None:
    """As mail programs save one, with what its delivery wrote above; no line of it begins another."""
    headers = (
        f"{'Received: from mx.example.org by mx.example.org' * 200}\nFrom: Nora <nora@example.org>\nSubject: Tea\n"
    )
    one = (
        f"{headers}Date: Tue, 30 Jan 2024 21:00:00 +0000\n\nFirst.\n\nFrom nora@example.org Tue Jan 30 21:50:07 2024\n"
    )
    read = Imported(one)
    assert read.format == "mbox"
    assert [(each.title, each.speaker, each.text.count("\n")) for each in read.memories] == [("Tea", "Nora", 2)]
    reply = one.replace("21:00", "22:00")
    assert len(Imported(zipped({"a.eml": one.encode(), "mails/B.EML": reply.encode()})).memories) == 2
    with pytest.raises(InvalidInput, match="none of these formats"):
        Imported("From: the garden\n\nLetters.")


def test_mails_that_are_there_twice_or_in_the_trash_are_skipped() -> None:
    one = MAIL.format(headers="Message-ID: <a@x>\nDate: Tue, 30 Jan 2024 21:00:00 +0000", body="first")
    spam = MAIL.format(headers="Message-ID: <s@x>\nX-Gmail-Labels: Spam,Unread", body="Win a yacht")
    read = Imported("\n".join([one, one, spam]))
    assert read.texts == ["first"]
    assert list(read.skips.values()) == ["same id as an earlier one", "mail in spam or trash"]


def test_all_mailboxes_of_a_zip_are_read_but_one_table_alone() -> None:
    boxes = {
        f"Takeout/Mail/{n}.mbox": MAIL.format(headers=f"Message-ID: <{n}@x>", body=f"{n}").encode() for n in range(3)
    }
    assert Imported(zipped(boxes)).texts == ["0", "1", "2"]
    finders = {"__MACOSX/Takeout/Mail/._0.mbox": b"\x00\x05\x16\x07"}
    assert Imported(zipped(boxes | finders)).texts == ["0", "1", "2"]
    tables = {f"{n}.csv": EXPORTS["csv"]() for n in range(2)}
    assert len(Imported(zipped({"a.csv": tables["0.csv"]})).texts) == 220
    with pytest.raises(InvalidInput, match="one by one"):
        Imported(zipped(tables))


@pytest.mark.parametrize("body", ["<a " * 100_000, "<" * 100_000, "<!--" * 100_000, "<![" * 100_000, "&#" * 100_000])
def test_hostile_html_is_read_in_passing(body: str) -> None:
    """Python's parser would take minutes for some of it."""
    read = mail("Subject: s\nContent-Type: text/html", body + "<p>end</p>")
    assert len(read.memories) + len(read.skips) + len(read.errors) == 1


NESTED = "".join(f"--b{n}\nContent-Type: multipart/mixed; boundary=b{n + 1}\n\n" for n in range(3_000))


@pytest.mark.parametrize(
    ("headers", "body"),
    [("Content-Type: multipart/mixed; boundary=b0", NESTED), (f"From: {'all: ' * 3_000}", "tea")],
    ids=["parts", "groups of senders"],
)
def test_mails_nested_without_end_are_refused(headers: str, body: str) -> None:
    read = mail(f"Subject: s\n{headers}", f"{body}\n\n{MAIL.format(headers='Subject: next', body='The next one')}")
    assert read.errors == {"mail 1": "its parts are nested too deeply"}
    assert read.texts == ["The next one"]


def test_a_line_that_names_the_separator_of_a_table_for_excel_is_none_of_its_rows() -> None:
    read = Imported("sep=;\r\ntext;speaker\r\nI drink tea, not coffee;Ana\r\nI;drink;milk\r\n")
    assert (read.format, read.texts) == ("csv", ["I drink tea, not coffee"])
    assert [*read.errors] == ["line 4"]


@pytest.mark.parametrize("row", ['Ana,"I drink tea', '"Ana,I drink tea'])
def test_the_row_of_a_table_whose_quote_is_not_closed_is_named(row: str) -> None:
    """Not the last line, which it takes with all before it; nor is that stored as its text."""
    read = Imported(f"speaker,text\nAna,I drink milk\n{row}\nAna,I drink water\nAna,I drink cocoa\n")
    assert read.texts == ["I drink milk"]
    assert list(read.errors) == ["line 3"]
    assert "quote" in read.errors["line 3"]


@pytest.mark.parametrize(("name", "file"), [("mbox", "a.mbox"), ("csv", "a.csv"), ("whatsapp-android", "_chat.txt")])
def test_what_precedes_the_damage_of_a_zip_is_read(name: str, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of members that are larger than what is read at once."""
    monkeypatch.setattr(files, "_CHUNK_BYTES", files.HEAD_BYTES)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(file, EXPORTS[name]() + b"\n" * (files.HEAD_BYTES + 20_000))
    broken = bytearray(buffer.getvalue())
    broken[-2_000] ^= 0xFF  # the checksum is only known at the end
    read = Imported(bytes(broken), name.partition("-")[0])
    assert len(read.memories) >= 219
    assert "is damaged" in read.errors["the rest of the file"]
