"""A database that does not answer: requests fail soon, unlike those waiting for a busy pool, and later work again."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from postgres.connection import Connection
from postgres.prepared import PreparedStatement
from retrieval.engine import Trivet
from retrieval.errors import StoreUnavailable
from retrieval.lifecycle.jobs import Progress
from retrieval.store import reachability
from retrieval.store.embedded.instance import EmbeddedPostgres
from retrieval.store.pool import WAIT_TIMEOUT_S, Pool, open_pool
from retrieval.types.memory import MemoryInput
from tests.faults.servers import FAST
from tests.processes import PATIENCE_S, postgres_in
from tests.serving import problem_of, served, settings_for

SOON_S = 20.0
"""Above what a busy machine makes of a second or two, below what a statement may take and callers of a busy pool wait
here."""

MEMORIES = {"memories": [{"id": "m1", "text": "My sister Ines moved to Porto."}]}
SEARCH = ("POST", "/v1/namespaces/a/search", {"query": "Who moved to Porto?"})
WRITE = ("POST", "/v1/namespaces/a/memories", MEMORIES)
READY = ("GET", "/health/ready", None)


@pytest.fixture(scope="module", autouse=True)
def connections_are_tried_as_by_users() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retrieval.store.pool.RECONNECT_TIMEOUT_S", 2)
        patch.setattr("retrieval.store.pool.WAIT_TIMEOUT_S", 3_600.0)
        yield


@contextmanager
def silence() -> Iterator[None]:
    """A block in which no answer is noticed as soon as by users; elsewhere a busy machine may answer later."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reachability, "ANSWER_TIMEOUT_S", 1.0)
        yield


class Line:
    """A TCP line to a PostgreSQL that listens on a Unix socket, which can go dead as a network does.

    Attributes:
        url: of the database, over this line.
    """

    def __init__(self, url: str) -> None:
        parts = conninfo_to_dict(url)
        self._database = f"{parts['host']}/.s.PGSQL.5432"
        self._name = parts["dbname"]
        self._works = asyncio.Event()
        self._works.set()
        self._takes_more = asyncio.Event()
        self._takes_more.set()
        self._server: asyncio.Server | None = None
        self._port = 0
        self._carrying: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self._port}/{self._name}?sslmode=disable&gssencmode=disable"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Line]:
        await self._listen()
        try:
            yield self
        finally:
            self._close()
            await self._hang_up()

    @asynccontextmanager
    async def mute(self) -> AsyncIterator[None]:
        """Everything is accepted, nothing is answered."""
        self._works.clear()
        with silence():
            yield
        self._works.set()

    @asynccontextmanager
    async def taking_no_more(self) -> AsyncIterator[None]:
        """As on a machine too busy to start anything: existing connections are answered, no new ones."""
        self._takes_more.clear()
        yield
        self._takes_more.set()

    @asynccontextmanager
    async def black_hole(self) -> AsyncIterator[None]:
        """Nothing answers, not even the system: the socket's connection queue is full."""
        self._works.clear()
        self._close()
        with silence(), ExitStack() as stack:
            deaf = stack.enter_context(socket.socket())
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            deaf.bind(("127.0.0.1", self._port))
            deaf.listen(0)
            for _ in range(4):
                caller = stack.enter_context(socket.socket())
                caller.setblocking(False)
                with suppress(BlockingIOError):
                    caller.connect(("127.0.0.1", self._port))
            yield
        await self._listen()
        self._works.set()

    @asynccontextmanager
    async def refusing(self) -> AsyncIterator[None]:
        """As when the server has ended: its connections are closed, and new ones are refused."""
        self._close()
        await self._hang_up()
        yield
        await self._listen()

    async def lose_server(self) -> None:
        """As a pooler does: the server's last words are followed by its own."""
        for writer in self._carrying.values():
            for code in (b"57P01", b"08P01"):
                fields = b"SFATAL\0C" + code + b"\0Mit is gone\0\0"
                writer.write(b"E" + (4 + len(fields)).to_bytes(4, "big") + fields)
        await self._hang_up()

    async def _hang_up(self) -> None:
        for task in self._carrying:
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    def _close(self) -> None:
        """Stop listening; existing connections stay."""
        assert self._server is not None
        self._server.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._carrying[task] = writer
        with closing(writer):
            await self._works.wait()
            await self._takes_more.wait()
            from_database, to_database = await asyncio.open_unix_connection(self._database)
            with closing(to_database), suppress(ConnectionError):
                await asyncio.gather(self._pass_on(reader, to_database), self._pass_on(from_database, writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while content := await reader.read(65_536):
            await self._works.wait()
            writer.write(content)
            await writer.drain()
        writer.close()


@pytest.fixture
async def line(database_url: str) -> AsyncIterator[Line]:
    async with Line(database_url).open() as opened:
        yield opened


async def status_of(client: httpx.AsyncClient, request: tuple[str, str, object]) -> int:
    method, path, body = request
    async with asyncio.timeout(SOON_S):
        answer = await client.request(method, path, json=body)
    if answer.status_code == 503:
        problem_of(answer, 503)
    return answer.status_code


async def comes_back(client: httpx.AsyncClient) -> None:
    """Searches, writes and readiness are answered again."""
    async with asyncio.timeout(PATIENCE_S):
        for request in (SEARCH, WRITE, READY):
            while True:
                if await status_of(client, request) != 503:
                    break
                await asyncio.sleep(0.05)
    answer = await client.post(SEARCH[1], json=SEARCH[2])
    assert [found["id"] for found in answer.json()["results"]] == ["m1"]
    assert answer.json()["degraded"] == []


@pytest.mark.parametrize("way", ["mute", "black_hole"])
@pytest.mark.parametrize("first", [SEARCH, WRITE, READY])
async def test_a_host_that_does_not_answer(line: Line, way: str, first: tuple[str, str, object]) -> None:
    """Whichever request is first, it fails soon, and so do all later ones."""
    async with served(line.url) as client:
        assert (await client.request(WRITE[0], WRITE[1], json=WRITE[2])).status_code == 201
        assert await status_of(client, SEARCH) == 200
        async with getattr(line, way)():
            for request in (first, SEARCH, WRITE, READY):
                assert await status_of(client, request) == 503
            assert (await client.get("/health/live")).status_code == 200, "to restart the server would mend nothing"
        await comes_back(client)


async def test_the_first_request_after_an_outage_is_answered(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """It makes Trivet try a database thought lost again, and need not be repeated."""
    monkeypatch.setattr(reachability, "LOOK_INTERVAL_S", 3_600.0)
    async with served(line.url) as client:
        async with line.refusing():
            for request in (SEARCH, WRITE, READY):
                assert await status_of(client, request) == 503
        assert await status_of(client, WRITE) == 201


@pytest.fixture
def url_of_its_own(data_dir: Path) -> Iterator[str]:
    """The URL of a server on that folder."""
    server = EmbeddedPostgres(data_dir, settings=FAST)
    try:
        yield server.start()
    finally:
        server.stop()


async def test_a_server_that_is_frozen(url_of_its_own: str, data_dir: Path) -> None:
    """Connections stay open, and the system accepts more of them."""
    async with served(url_of_its_own) as client:
        assert (await client.request(WRITE[0], WRITE[1], json=WRITE[2])).status_code == 201
        processes = postgres_in(data_dir)
        for process in processes:
            process.send_signal(signal.SIGSTOP)
        try:
            with silence():
                for request in (SEARCH, WRITE, READY):
                    assert await status_of(client, request) == 503
        finally:
            for process in processes:
                process.send_signal(signal.SIGCONT)
        await comes_back(client)


async def test_who_waits_for_a_lost_database_fails_with_it(line: Line) -> None:
    """One that waits for rows, and one that waits for its connection."""
    async with open_pool(line.url, 4) as pool:

        async def ask() -> None:
            async with pool.connection() as conn:
                await conn.execute("select pg_sleep(600)")

        asking = [asyncio.create_task(ask()) for _ in range(6)]
        async with line.mute(), asyncio.timeout(SOON_S):
            outcomes = await asyncio.gather(*asking, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 6
        assert "\n" not in "".join(map(str, outcomes)), "one line of a log"
        async with asyncio.timeout(PATIENCE_S):
            await until_it_answers(pool)


async def _sleep(conn: Connection) -> None:
    await PreparedStatement("select pg_sleep(600)").rows(conn, {})


@pytest.mark.parametrize("ask", [_sleep, Connection.commit])
async def test_a_pooler_may_tell_twice_of_a_lost_server(
    line: Line, ask: Callable[[Connection], Awaitable[None]]
) -> None:
    async with open_pool(line.url, 4) as pool:
        may_ask = asyncio.Event()

        async def asked() -> None:
            async with pool.connection() as conn:
                await conn.execute("begin")
                await may_ask.wait()
                await ask(conn)

        asking = asyncio.create_task(asked())
        await asyncio.sleep(0.1)
        async with line.mute():
            may_ask.set()
            await asyncio.sleep(0.1)
            await line.lose_server()
            with pytest.raises(StoreUnavailable):
                await asking
        async with asyncio.timeout(PATIENCE_S):
            await until_it_answers(pool)


async def test_a_database_that_answers_anybody_is_not_lost(line: Line) -> None:
    """However long accepting one more connection takes, no running statement is aborted for it."""
    async with open_pool(line.url, 4) as pool, line.taking_no_more(), asyncio.timeout(PATIENCE_S):

        async def ask() -> None:
            for _ in range(8):
                async with pool.connection() as conn:
                    await conn.execute("select pg_sleep(0.3)")

        with silence():
            await asyncio.gather(*(ask() for _ in range(6)))
        assert pool.reachability.losses == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other options")
async def test_a_connection_that_a_router_has_forgotten_ends_by_itself(line: Line) -> None:
    """Only the system can tell, as the database answers others; it must check idle connections, too."""
    async with open_pool(line.url, 2) as pool, pool.connection() as conn:
        with socket.socket(fileno=os.dup(conn.fileno())) as tcp:
            assert tcp.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 60
            assert 0 < tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= WAIT_TIMEOUT_S * 1000


async def test_a_busy_pool_is_not_a_lost_database(database_url: str) -> None:
    """Even if the server has no more connections for us: callers wait until one is returned."""
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute("create role pool_of_four login connection limit 4")
    try:
        async with open_pool(database_url.replace("postgres@", "pool_of_four@"), 4) as pool:

            async def hold() -> None:
                async with pool.connection() as conn:
                    await conn.execute("select pg_sleep(2.2)")

            holders = [asyncio.create_task(hold()) for _ in range(4)]
            async with pool.connection() as conn:
                assert await (await conn.execute("select 1")).fetchone() == (1,)
            await asyncio.gather(*holders)
            assert pool.reachability.losses == 0
    finally:
        with psycopg.connect(database_url, autocommit=True) as db:
            db.execute("drop role pool_of_four")


async def test_what_the_database_gave_serves_on_when_it_gives_no_more(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As when others have taken all of its connections, or the password was changed."""
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute("create role pool_of_few login")
        try:
            async with open_pool(database_url.replace("postgres@", "pool_of_few@"), 4) as pool:
                db.execute("alter role pool_of_few connection limit 0")
                ends = "select pg_terminate_backend(pid, 10000) from pg_stat_activity where usename = 'pool_of_few'"
                db.execute(f"{ends} limit 3".encode())
                async with asyncio.timeout(PATIENCE_S):
                    while "refuses another connection" not in caplog.text:
                        await until_it_answers(pool)
                assert pool.reachability.losses == 0
                db.execute(ends.encode())
                with pytest.raises(StoreUnavailable):
                    async with pool.connection():
                        pass
                db.execute("alter role pool_of_few connection limit -1")
                async with asyncio.timeout(PATIENCE_S):
                    await until_it_answers(pool)
            told = [each.getMessage() for each in caplog.records if each.name == "retrieval.store.reachability"]
        finally:
            db.execute("drop role pool_of_few")
    assert [line.partition(": ")[0] for line in told] == [
        "the database refuses another connection",
        "the database is lost",
        "the database answers again",
    ]
    assert all("too many connections" in line for line in told[:2])


async def test_where_the_database_is_only_the_log_says(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    async with served(line.url) as client:
        await client.request(WRITE[0], WRITE[1], json=WRITE[2])
        async with line.refusing():
            answer = await client.get("/v1/namespaces/a/export")
    detail = str(problem_of(answer, 503)["detail"])
    assert ("cannot be reached" in detail, "127.0.0.1" in detail) == (True, False)
    assert re.search(r"request \w+ failed with 503: .*127\.0\.0\.1", caplog.text)


async def test_the_outcome_of_a_job_is_recorded_when_the_database_is_back(line: Line) -> None:
    async with Trivet.open(settings_for(line.url)) as trivet:
        await trivet.add("a", [MemoryInput(text="My sister Ines moved to Porto.")])
        progress = Progress(kind="import", namespace="a")
        await trivet.jobs.start(progress)
        async with line.refusing(), trivet.jobs.following(progress):
            pass
        await trivet.maintain()
        assert [job.state for job in await trivet.jobs.recent()] == ["done"]


async def until_it_answers(pool: Pool) -> None:
    while True:
        with suppress(StoreUnavailable):
            async with pool.connection() as conn:
                await conn.execute("select 1")
                return
        await asyncio.sleep(0.05)
