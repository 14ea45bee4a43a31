"""Exporting and importing a namespace gives the same namespace."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from contextlib import ExitStack, aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import psycopg
import pytest
from msgspec.structs import replace
from psycopg import sql

from graph.names import entity_id
from retrieval.api import bulk, server
from retrieval.engine import Trivet
from retrieval.entities.view import entity_code
from retrieval.lifecycle.export import MARK, read_header
from retrieval.lifecycle.service import MOST_EXPORTS
from retrieval.types.document import DocumentInput
from retrieval.types.entity import AliasChange
from retrieval.types.memory import EntityInput, MemoryInput, MemoryPatch, RelationInput
from retrieval.types.namespace import NamespaceSettings, QueryLogSettings, TransitiveRule
from retrieval.types.search import Filters, Mode, SearchRequest
from tests.command import Cli
from tests.processes import PATIENCE_S, until
from tests.serving import on_a_port, problem_of, served, settings_for

DAY = datetime(2024, 3, 4, 9, tzinfo=UTC)
PEOPLE = ("Lucía", "Bruno", "Ines", "Tomasz")
THINGS = ("kettle", "bicycle", "guitar", "telescope", "kayak", "piano", "violin", "tent")
PLACES = ("Porto", "Lisbon", "Geneva", "Kraków", "Lake Garda")
QUERIES = (
    "Where does Lucía live?",
    "Who has the kettle?",
    "telescope in Geneva",
    "What did Bruno say about the kayak?",
    "What happened in April 2024?",
    "What does Lu like?",
    "Who is in the rowing club?",
    "piano violin guitar",
    "Tomasz at Benaco",
)


def _facts() -> list[MemoryInput]:
    """Facts with stated entities, some of which expire or supersede others, some in the future."""
    return [
        MemoryInput(
            id=f"f{number * 37 % 100:02}",
            text=f"{PEOPLE[number % 4]} has a {THINGS[number % 8]} in {PLACES[number % 5]}.",
            title="Things" if number % 3 == 0 else None,
            created_at=DAY + timedelta(days=number),
            expires_at=DAY + timedelta(days=number + 1) if number % 10 == 9 else None,
            tags=["fact", f"t{number % 3}"],
            metadata={"number": number, "ratio": number / 7, "deep": {"list": [1, "é\u2028"]}},
            document_id="notes" if number % 4 == 0 else None,
            entities=[EntityInput(name="Lucía", type="person", aliases=["Lu"])] if number == 0 else [],
            relations=[RelationInput(source=PEOPLE[number % 4], type="member_of", target="Rowing Club")],
            supersedes=[f"f{(number + later) * 37 % 100:02}" for later in (8, 9)] if number % 12 == 11 else None,
        )
        for number in range(80)
    ]


def _turns(session: str, size: int, *, placed: bool) -> list[MemoryInput]:
    return [
        MemoryInput(
            id=f"{session}-{(number * 7) % size}",
            text=f"I {'took' if number % 2 else 'lost'} the {THINGS[number % 8]} near {PLACES[number % 5]}, {number}.",
            kind="message",
            speaker=PEOPLE[(number + size) % 4],
            session_id=session,
            position=size - number if placed else None,
            created_at=DAY + timedelta(hours=number),
        )
        for number in range(size)
    ]


async def _live(engine: Trivet, name: str) -> None:
    """A namespace with a past: batches of all kinds, changes, deletions."""
    rules = NamespaceSettings(rules=[TransitiveRule(relation="member_of")], query_log=QueryLogSettings(max_entries=5))
    await engine.put_namespace(name, rules)
    chunks = [
        MemoryInput(id=f"c{number}", text=f"Page {number} tells of a {THINGS[number % 8]}.", kind="chunk")
        for number in range(40)
    ]
    for batch in (_facts(), _turns("s1", 50, placed=False), _turns("s2", 45, placed=True), chunks):
        assert {result.status for result in await engine.add(name, batch)} == {"created"}
    await engine.patch(name, "s1-3", MemoryPatch(text="I sold the piano, after all."))  # keeps its place
    await engine.patch(name, "f05", MemoryPatch(text="Ines lives in Porto.", supersedes="f42"))
    await engine.add(name, [MemoryInput(text="Bruno prefers tea.", session_id="s2")])  # gets its own id and time
    await engine.delete(name, "s1-10")
    await engine.delete_many(name, filters=Filters(tags_all=["t2"], document_id=["notes"]))
    ids = {entity.name: entity.id for entity in (await engine.entities.list(name, limit=1_000)).entities}
    await engine.entities.merge(name, ids["Tomasz"], ids["Bruno"])
    await engine.entities.merge(name, ids["Bruno"], ids["Ines"])
    await engine.entities.change_aliases(name, ids["Lake Garda"], AliasChange(add=["Benaco"]))


async def _answers(engine: Trivet, name: str) -> dict[str, Any]:
    """Answers to many searches, as JSON without search ids and timings."""
    variants: dict[str, dict[str, Any]] = {str(mode): {"mode": mode} for mode in Mode}
    variants |= {
        "all": {"include_superseded": True, "top_k": 100},
        "then": {"as_of": DAY + timedelta(days=30)},
        "turns": {"filters": Filters(kind=["message"], session_id=["s1"])},
        "tagged": {"filters": Filters(tags_any=["t1"], metadata={"deep": {"list": [1]}})},
    }
    found = {}
    for title, fields in variants.items():
        for query in QUERIES:
            request = SearchRequest(query=query, query_timestamp=DAY, explain=True, **fields)
            answer = msgspec.to_builtins(await engine.search(name, request))
            del answer["search_id"], answer["timings_ms"]
            found[f"{title}: {query}"] = answer
    return found


async def _export(engine: Trivet, name: str) -> bytes:
    return b"".join([piece async for piece in engine.lifecycle.export(name)])


async def test_searches_of_an_imported_export_answer_the_same(database_url: str, tmp_path: Path, cli: Cli) -> None:
    file, again = tmp_path / "own.jsonl", tmp_path / "again.jsonl"
    settings = settings_for(database_url)
    async with Trivet.open(settings) as engine:
        await _live(engine, "own")
        before = await _answers(engine, "own")
        assert sum(len(answer["results"]) for answer in before.values()) > 500
        listed = await engine.list("own", Filters(), cursor=None, limit=1_000)
        file.write_bytes(await _export(engine, "own"))
        assert len(file.read_bytes().splitlines()) > 201

    await asyncio.to_thread(cli, "import", "-n", "copy", str(file))
    await asyncio.to_thread(cli, "export", "-n", "copy", "-o", str(again))
    assert again.read_bytes() == file.read_bytes()
    async with Trivet.open(settings) as engine:
        after = await _answers(engine, "copy")
        assert [question for question, answer in after.items() if answer != before[question]] == []
        assert msgspec.json.encode(after) == msgspec.json.encode(before)
        copied = await engine.list("copy", Filters(), cursor=None, limit=1_000)
        assert [each.id for each in copied.memories] == [each.id for each in listed.memories]
        assert [each.superseded_by for each in copied.memories] == [each.superseded_by for each in listed.memories]
        own, copy = await engine.get_namespace("own"), await engine.get_namespace("copy")
        assert own.settings == copy.settings
        assert (own.memories, own.mentions, own.relations) == (copy.memories, copy.mentions, copy.relations)


async def test_an_export_is_of_one_moment(trivet: Trivet) -> None:
    """Memories written during the export are not in it, and those deleted during it are."""
    await trivet.add("own", [MemoryInput(id=f"m{number:03}", text=f"note {number}") for number in range(300)])
    pieces = trivet.lifecycle.export("own")
    header = await anext(pieces)
    await trivet.delete("own", "m299")
    await trivet.add("own", [MemoryInput(id="late", text="too late")])
    lines = b"".join([piece async for piece in pieces]).splitlines()
    assert msgspec.json.decode(header)["memories"] == 300
    assert [msgspec.json.decode(line)["id"] for line in lines] == [f"m{number:03}" for number in range(300)]


async def test_what_was_sent_without_a_time_is_unchanged_in_a_copy_too(trivet: Trivet) -> None:
    """An export has the assigned time, id and position, which do not make it a different memory; nor does a patch.

    Documents too.
    """
    document = DocumentInput(id="d", text="Bees dance.")
    tea, timed = MemoryInput(id="a", text="tea"), MemoryInput(id="b", text="coffee", created_at=DAY)
    turns = [MemoryInput(id=id_, text=id_, session_id="s", created_at=DAY) for id_ in ("t0", "t1", "t2")]
    await trivet.add("own", [tea, timed, MemoryInput(text="milk"), *turns])
    await trivet.documents.put("own", document)
    _, *lines = (await _export(trivet, "own")).splitlines()
    exported = [msgspec.json.decode(line, type=MemoryInput) for line in lines]
    await trivet.add("copy", exported)
    untimed, moved = replace(timed, created_at=None), replace(timed, created_at=DAY + timedelta(hours=1))
    for name in ("own", "copy"):
        for memories in ([tea, timed, *turns], [tea, untimed], exported):
            assert {result.status for result in await trivet.add(name, memories)} == {"unchanged"}
        assert (await trivet.documents.put(name, document)).status == "unchanged"
        await trivet.patch(name, "a", MemoryPatch(tags=["hot"]))
        again = await trivet.add(name, [replace(tea, tags=["hot"]), moved, replace(turns[0], position=7)])
        assert [result.status for result in again] == ["unchanged", "updated", "updated"]


async def test_what_had_expired_before_it_was_sent_is_taken_and_taken_back(trivet: Trivet) -> None:
    """As in old data that say no other time; and it is unchanged once it has expired."""
    gone = MemoryInput(id="gone", text="The guest code is 4711.", expires_at=DAY)
    assert [(await trivet.add("own", [gone]))[0].status for _ in range(2)] == ["created", "unchanged"]
    _, line = (await _export(trivet, "own")).splitlines()
    exported = msgspec.json.decode(line, type=MemoryInput)
    assert exported.created_at == DAY
    for memory, status in ((exported, "created"), (exported, "unchanged"), (gone, "unchanged")):
        assert (await trivet.add("copy", [memory]))[0].status == status


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
async def test_times_are_told_in_utc(database_url: str, zone: str) -> None:
    """Historic offsets of other zones have seconds, which RFC 3339 cannot express."""
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute(sql.SQL("alter database {} set timezone = {}").format(sql.Identifier(db.info.dbname), zone))
    async with Trivet.open(settings_for(database_url)) as trivet:
        times = [datetime(year, 1, 1, tzinfo=UTC) for year in (2, 1850, 2024)]
        await trivet.add("own", [MemoryInput(id=f"{at.year}", text="It rained.", created_at=at) for at in times])
        _, *lines = (await _export(trivet, "own")).splitlines()
        assert [msgspec.json.decode(line, type=MemoryInput).created_at for line in lines] == times
        assert all(msgspec.json.decode(line)["created_at"].endswith("Z") for line in lines)
        assert [(await trivet.get("own", f"{at.year}")).created_at for at in times] == times


async def test_turns_after_the_last_position_keep_their_order(trivet: Trivet) -> None:
    await trivet.add("own", [MemoryInput(id="z", text="First turn.", session_id="s", position=2**31 - 1)])
    for id_ in "yxw":
        await trivet.add("own", [MemoryInput(id=id_, text=f"Turn {id_}.", session_id="s")])
    _, *lines = (await _export(trivet, "own")).splitlines()
    await trivet.add("copy", [msgspec.json.decode(line, type=MemoryInput) for line in lines])
    places = "select array_agg(t.id order by t.place, t.id) from turn t join namespace n using (ns) group by n.name"
    async with trivet._pool.connection() as conn:
        found = await (await conn.execute(places)).fetchall()
    assert found == [(["z", "y", "x", "w"],)] * 2


async def test_an_alias_may_be_the_name_of_what_was_merged(trivet: Trivet) -> None:
    said = {"a": "Robert Smith", "b": "Bobby"}
    await trivet.add("own", [MemoryInput(id=id_, text="x", entities=[EntityInput(name=said[id_])]) for id_ in said])
    robert, bobby = (entity_code(entity_id(key)) for key in ("robert smith", "bobby"))
    await trivet.entities.merge("own", bobby, robert)
    await trivet.entities.change_aliases("own", robert, AliasChange(add=["Bobby"]))
    header, *lines = (await _export(trivet, "own")).splitlines()
    await trivet.add("copy", [msgspec.json.decode(line, type=MemoryInput) for line in lines])
    assert await trivet.lifecycle.complete_import("copy", read_header(header)) == []
    copied = read_header((await _export(trivet, "copy")).splitlines()[0])
    assert [*copied.aliases] == [("robert smith", "Bobby")]


async def test_an_alias_that_texts_use_is_taken_back(trivet: Trivet) -> None:
    """They mention its entity; imported before the alias is given, they have a separate one until then."""
    await trivet.add("own", [MemoryInput(id="a", text="Ines lives in Porto.")])
    porto = entity_code(entity_id("porto"))
    await trivet.entities.change_aliases("own", porto, AliasChange(add=["Oporto"]))
    await trivet.add("own", [MemoryInput(id="b", text="Bruno went to Oporto.")])
    header, *lines = (await _export(trivet, "own")).splitlines()
    await trivet.add("copy", [msgspec.json.decode(line, type=MemoryInput) for line in lines])
    assert await trivet.lifecycle.complete_import("copy", read_header(header)) == []
    assert await trivet.entities.list("copy") == await trivet.entities.list("own")
    pages = [await trivet.entities.page(name, porto) for name in ("own", "copy")]
    assert [[each.id for each in page.memories] for page in pages] == [["b", "a"]] * 2
    copied = read_header((await _export(trivet, "copy")).splitlines()[0])
    assert [*copied.aliases] == [("porto", "Oporto")]


async def test_two_who_have_one_alias_stay_two(trivet: Trivet) -> None:
    """For a text written while only one entity had it, it is no longer known which one it meant."""
    given = {"a": "Duarte Pinto", "b": "Lucia Gomez"}
    await trivet.add("own", [MemoryInput(id=id_, text="x", entities=[EntityInput(name=given[id_])]) for id_ in given])
    duarte, lucia = (entity_code(entity_id(key)) for key in ("duarte pinto", "lucia gomez"))
    await trivet.entities.change_aliases("own", duarte, AliasChange(add=["Lu"]))
    await trivet.add("own", [MemoryInput(id="c", text="Yesterday Lu called.")])
    await trivet.entities.change_aliases("own", lucia, AliasChange(add=["Lu"]))
    header, *lines = (await _export(trivet, "own")).splitlines()
    await trivet.add("copy", [msgspec.json.decode(line, type=MemoryInput) for line in lines])
    assert await trivet.lifecycle.complete_import("copy", read_header(header)) == []
    for person, own in ((duarte, "a"), (lucia, "b")):
        page = await trivet.entities.page("copy", person)
        assert ([memory.id for memory in page.memories], page.aliases, page.merged) == ([own], ["Lu"], [])


def test_where_an_export_is_written(cli: Cli, tmp_path: Path) -> None:
    """A link's target is replaced, not the link; pipes are written to; a missing folder gives a one-line error."""
    cli("add", "-n", "own", "Ines moved to Porto.")
    link, pipe, read = tmp_path / "link", tmp_path / "pipe", []
    link.symlink_to(tmp_path / "target")
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    for path in (link, pipe):
        cli("export", "-n", "own", "-o", path)
    reader.join()
    assert link.is_symlink()
    assert pipe.is_fifo()
    assert (tmp_path / "target").read_bytes() == read[0]
    assert cli("export", "-n", "own", "-o", "-").stdout_bytes == read[0]
    nowhere = cli("export", "-n", "own", "-o", tmp_path / "none" / "x", status=1)
    assert nowhere.stderr == f"Error: output: there is no folder {tmp_path}/none\n"


async def test_exports_wait_for_each_other_where_there_are_many(trivet: Trivet) -> None:
    """Their readers may be slow, and others need database connections, too."""
    await trivet.add("own", [MemoryInput(id="a", text="x")])
    under_way = [trivet.lifecycle.export("own") for _ in range(MOST_EXPORTS)]
    for each in under_way:
        assert await anext(each)
    async with aclosing(trivet.lifecycle.export("own")) as another:
        first = asyncio.create_task(anext(another))
        await trivet.lifecycle.history("own", "a")
        assert not first.done()
        await under_way.pop().aclose()
        assert (await first).startswith(MARK)
    for each in under_way:
        await each.aclose()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such timeout")
def test_readers_who_take_nothing_do_not_hold_up_others(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SEND_TIMEOUT_S", 0.5)
    with ExitStack() as stack:
        url = stack.enter_context(on_a_port(settings_for(database_url)))
        client = stack.enter_context(httpx.Client(base_url=url, timeout=PATIENCE_S))
        client.post("/v1/namespaces/n/memories", json={"memories": [{"text": "x"} for _ in range(500)]})
        with psycopg.connect(database_url) as db:  # more than any socket holds
            db.execute("update memory set text = repeat('lorem ipsum ', 6000)")
        client.post("/v1/namespaces/other/memories", json={"memories": [{"text": "x"}]})
        for _ in range(MOST_EXPORTS):
            reader = stack.enter_context(socket.socket())
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect((client.base_url.host, client.base_url.port))
            reader.sendall(b"GET /v1/namespaces/n/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert reader.recv(12) == b"HTTP/1.1 200"
        assert len(client.get("/v1/namespaces/other/export").text.splitlines()) == 2


def test_a_database_that_is_lost_meanwhile_is_one_line_of_the_log(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The client sees that the response is not complete."""
    with (
        on_a_port(settings_for(database_url)) as url,
        httpx.Client(base_url=url, timeout=PATIENCE_S) as client,
        psycopg.connect(database_url, autocommit=True) as db,
    ):
        client.post("/v1/namespaces/n/memories", json={"memories": [{"text": "x"} for _ in range(500)]})
        db.execute("update memory set text = repeat('lorem ipsum ', 6000)")  # more than any socket holds
        with client.stream("GET", "/v1/namespaces/n/export") as answer:
            pieces = answer.iter_bytes()
            assert next(pieces).startswith(MARK)
            end = (
                "select pg_terminate_backend(pid, 60000) from pg_stat_activity "
                "where query ~* '^fetch .*export' and datname = current_database()"
            )
            until(lambda: db.execute(end).fetchall())
            with pytest.raises(httpx.RemoteProtocolError):
                list(pieces)
    [line] = [each for each in caplog.messages if "StoreUnavailable" in each]
    assert "\n" not in line
    assert not [each for each in caplog.records if each.exc_info]


async def test_over_http_it_is_the_same(client: httpx.AsyncClient) -> None:
    problem_of(await client.get("/v1/namespaces/own/export"), 404)
    memory = {"id": "m1", "text": "Ines moved to Porto.", "created_at": "2024-05-01T00:00:00Z"}
    await client.post("/v1/namespaces/own/memories", json={"memories": [memory]})
    answer = await client.get("/v1/namespaces/own/export")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    header, line = map(msgspec.json.decode, answer.text.splitlines())
    assert (header["trivet_export"], header["memories"], header["written"]) == (1, 1, 1)
    assert line == {**memory, "kind": "memory"}


async def test_a_namespace_without_room_is_told_and_its_export_makes_some(
    client: httpx.AsyncClient, database_url: str
) -> None:
    await client.post("/v1/namespaces/own/memories", json={"memories": [{"id": "m1", "text": "Ines moved to Porto."}]})
    with psycopg.connect(database_url) as db:
        db.execute("update namespace set next_doc = 2147483647")
    more = {"memories": [{"id": "m2", "text": "Ines moved on."}]}
    full = problem_of(await client.post("/v1/namespaces/own/memories", json=more), 409)
    assert "export" in str(full["detail"])
    exported = (await client.get("/v1/namespaces/own/export")).content
    headers = {"content-type": "application/x-ndjson"}
    await client.post("/v1/namespaces/copy/memories/bulk", content=exported, headers=headers)
    [added] = (await client.post("/v1/namespaces/copy/memories", json=more)).json()["results"]
    assert added["status"] == "created"


async def test_the_bulk_endpoint_takes_an_export_back(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings, order of insertion, aliases and merges by hand included; a header of another version is refused."""
    monkeypatch.setattr(bulk, "CHUNK_LINES", 16)
    async with served(database_url) as client, Trivet.open(settings_for(database_url)) as engine:
        await _live(engine, "own")
        exported = await _export(engine, "own")
        headers = {"content-type": "application/x-ndjson"}
        answer = await client.post("/v1/namespaces/copy/memories/bulk", content=exported, headers=headers)
        assert {msgspec.json.decode(line)["status"] for line in answer.text.splitlines()} == {"created"}
        assert len(answer.text.splitlines()) == len(exported.splitlines()) - 1
        assert await _export(engine, "copy") == exported
        newer = exported.replace(b'"trivet_export":1', b'"trivet_export":2', 1)
        url = "/v1/namespaces/other/memories/bulk"
        problem_of(await client.post(url, content=newer, headers=headers), 422)


def test_a_file_that_ends_early_or_is_of_another_version_is_named(tmp_path: Path, cli: Cli) -> None:
    header = b'{"trivet_export":1,"memories":2,"written":2,"settings":{}}\n'
    file = tmp_path / "own.jsonl"
    file.write_bytes(header + b'{"id":"m1","text":"Ines moved to Porto."}\n')
    assert "1 of 2 memories" in cli("import", "-n", "own", str(file), status=1).output
    file.write_bytes(header.replace(b":1,", b":2,", 1))
    assert "trivet_export" in cli("import", "-n", "own", str(file), status=1).output


def test_an_import_leaves_the_settings_of_a_namespace_in_use(tmp_path: Path, cli: Cli) -> None:
    cli("add", "-n", "own", "The kettle is copper.", "--id", "m0")
    file, again = tmp_path / "own.jsonl", tmp_path / "again.jsonl"
    settings = b'{"profile":"research"}'
    file.write_bytes(b'{"trivet_export":1,"memories":1,"written":9,"settings":' + settings + b'}\n{"text":"Hi."}\n')
    cli("import", "-n", "own", str(file))
    cli("export", "-n", "own", "-o", str(again))
    header = msgspec.json.decode(again.read_bytes().splitlines()[0])
    assert (header["memories"], header["settings"]["profile"]) == (2, None)
    assert sorted(tmp_path.iterdir()) == [again, file], "nothing is left of an unfinished file"
