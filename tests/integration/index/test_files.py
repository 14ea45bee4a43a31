"""Indexes kept in files: a process that starts with one agrees with the tables, or does not use it."""

from __future__ import annotations

import asyncio
import logging
import shutil
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graph.names import entity_id
from retrieval.index import array_file, namespace_index, packed_postings, registry, small_namespaces
from retrieval.index.array_file import ExtendedArray, FileArray
from retrieval.index.comparison import check_files
from retrieval.index.files import IndexFiles
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.index.registry import IndexRegistry, StillReading
from retrieval.store import changes, entities, namespaces
from retrieval.store.bm25 import postings
from retrieval.store.pool import Pool, open_pool
from retrieval.types.memory import EntityInput, MemoryInput, MemoryPatch, RelationInput
from tests.examples import share_of_examples
from tests.integration.index.test_registry import (
    ACTIONS,
    NAMES,
    Process,
    act,
    assert_masks,
    assert_right,
    memory,
)


@pytest.fixture(scope="module", autouse=True)
def every_namespace_is_large() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_namespaces, "MOST_ORDINALS", -1)
        yield


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    async with open_pool(database_url, 6) as pool:
        yield pool


class Keeper(Process):
    """A process that keeps its indexes in files."""

    def __init__(self, pool: Pool, files: IndexFiles) -> None:
        super().__init__(pool)
        self.files = files
        self.indexes = IndexRegistry(pool, most_bytes=2**30, files=files)

    @classmethod
    async def start(cls, pool: Pool, folder: Path) -> Keeper:
        async with pool.connection() as conn:
            return cls(pool, await IndexFiles.open(folder, conn))

    async def save(self, name: str = "n") -> bool:
        """Write its index of a namespace as it is now."""
        await self.vectors(await self.snapshot(name))
        index = (await self.snapshot(name)).index
        return bool(await self.files.save(self.pool, index))

    async def loaded(self, name: str = "n") -> NamespaceIndex:
        """The index of a namespace by the file, when its vectors are there."""
        return (await self.snapshot(name)).index


Start = Callable[[], Awaitable[Keeper]]
"""Starts a process over the same database and folder."""


@pytest.fixture
async def start(pool: Pool, tmp_path: Path) -> AsyncIterator[Start]:
    started = list[Keeper]()

    async def start() -> Keeper:
        started.append(await Keeper.start(pool, tmp_path / "cache"))
        return started[-1]

    yield start
    for keeper in started:
        await keeper.indexes.aclose()


def saved_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on indexes of any size are written as soon as necessary."""
    monkeypatch.setattr(registry, "WARMED_FROM", 1)
    monkeypatch.setattr(registry, "SAVE_PAUSE_S", 0.0)


async def saved(start: Start) -> Keeper:
    """A process that has written a memory, and its index to a file."""
    process = await start()
    await process.ingest.add("n", [memory("a")])
    await process.save()
    return process


def files_in(folder: Path, pattern: str = "*.index") -> list[Path]:
    return sorted(folder.rglob(pattern))


def file_of(indexes: IndexRegistry) -> str:
    index = indexes.last("n")
    return index.file if index else ""


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - nothing signals it
            await asyncio.sleep(0.01)


# --- what is in a file


async def test_a_new_process_reads_the_file_and_what_has_changed_since(start: Start, tmp_path: Path) -> None:
    one = await start()
    turns = [memory(id_, f"{id_}? Größe", session_id="s", speaker="Zoë", tags=["ü"]) for id_ in "abc"]
    stated = memory(
        "d", entities=[EntityInput(name="Ida")], relations=[RelationInput(source="Ida", type="in", target="Porto")]
    )
    await one.ingest.add("n", [*turns, stated])
    await one.save()
    await one.ingest.add("n", [memory("e", "harbour"), memory("a", "boats", session_id="t")])
    await one.ingest.delete("n", "b")
    other = await start()
    index = await other.loaded()
    assert index.file
    await assert_right(other)
    await assert_masks(other, "n")
    [path] = files_in(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_no_terms_are_read_where_a_file_has_all_postings(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor of memories changed since that have left the tail; a new memory outside the tail may have any term."""
    one = await start()
    await one.ingest.add("n", [memory("a", "boats in Porto"), memory("b", "boats"), memory("c", "Faro")])
    await one.save()
    await one.compact()
    await one.ingest.patch("n", "a", MemoryPatch(tags=["ü"]))
    await one.ingest.delete("n", "b")
    await one.ingest.add("n", [memory("d", "harbour boats")])
    other = await start()
    with monkeypatch.context() as patch:
        patch.setattr(postings, "decode_terms", None)
        await other.snapshot()
        await other.ingest.add("n", [memory("e", "Porto")])
        await other.snapshot()
    await assert_right(other)
    await other.ingest.add("n", [memory("f", "Faro")])
    await one.compact()
    await assert_right(other)


async def test_a_few_writes_copy_none_of_the_large_arrays_of_a_file(start: Start) -> None:
    """It has spare room for more memories, and so has every file written from such an index."""
    process = await start()
    await process.ingest.add("n", [turn(number) for number in range(40)])
    for number in range(40, 60, 2):
        await process.save()
        process = await start()
        index = await process.loaded()
        before = large(index)
        await process.ingest.add("n", [turn(new) for new in range(number, number + 2)])
        await process.vectors(await process.snapshot())
        assert index is await process.loaded()
        now = large(index)
        assert before
        assert [name for name, array in before.items() if not np.shares_memory(array, now[name])] == []
    await process.ingest.add("n", [turn(new) for new in range(60, 80)])
    await assert_right(process)


def turn(number: int) -> MemoryInput:
    return memory(f"t{number}", f"Ida {number}", session_id="s", position=number)


def large(index: NamespaceIndex) -> dict[str, NDArray[Any]]:
    """The arrays of an index that grow with its memories, except those that `arrays` copies."""
    found = {
        name: each.array for name, each in index.arrays().items() if isinstance(each, ExtendedArray) and each.nbytes
    }
    copies = {f"vectors.{name}" for name in index.vectors.COPIED} | {f"names.{name}" for name in index.names.COPIED}
    return {name: array for name, array in found.items() if name not in copies}


@settings(max_examples=share_of_examples(0.2), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.lists(
            st.tuples(st.integers(0, 1), ACTIONS | st.tuples(st.just("save"), st.none())),
            min_size=1,
            max_size=3,
        ),
        max_size=8,
    )
)
async def test_after_any_history_a_file_brings_what_is_read_anew(
    start: Start, tmp_path: Path, steps: list[list[tuple[int, tuple[str, Any]]]]
) -> None:
    """Files are written slowly while memories change, so that they contain parts of most changes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_file, "write", slow_write)
        two = [await start(), await start()]
        name = next(NAMES)
        await two[0].ingest.add(name, [memory("a"), memory("b", "Bo?", session_id="s")])
        await two[0].save(name)
        for step in steps:
            async with asyncio.TaskGroup() as group:
                for who, (action, what) in step:
                    doing = two[who].save(name) if action == "save" else act(two[who], name, action, what)
                    group.create_task(doing)
        fresh = await start()
        assert (await fresh.loaded(name)).file
        await assert_right(fresh, name)
        await assert_masks(fresh, name)
        async with fresh.pool.connection() as conn:
            findings = await check_files(conn, tmp_path / "cache")
            assert all(finding.ok for finding in findings), findings
        await fresh.ingest.add(name, [memory("a", "Porto."), memory("z")])
        await assert_right(fresh, name)


def halted(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> tuple[asyncio.Event, asyncio.Event]:
    """Make the first call of a coroutine function set one event, and wait for the other."""
    function, begun, go_on = getattr(owner, name), asyncio.Event(), asyncio.Event()

    async def halting(*args: Any, **options: Any) -> Any:
        if not begun.is_set():
            begun.set()
            await go_on.wait()
        return await function(*args, **options)

    monkeypatch.setattr(owner, name, halting)
    return begun, go_on


@pytest.mark.parametrize("is_followed", [True, False])
async def test_a_file_has_a_merge_wholly_or_not_at_all(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_followed: bool
) -> None:
    """Whether the index being written follows the merge, or is dropped because too many memories mention it."""
    one = await start()
    named = {"a": ("Ida", "Porto"), "b": ("Ida Brown",), "c": ("Ida", "Porto")}
    await one.ingest.add("n", [memory(id_, entities=[EntityInput(name=each) for each in named[id_]]) for id_ in named])
    await one.vectors(await one.snapshot())
    packing, go_on_packing = halted(monkeypatch, packed_postings, "pack")
    save, saved = IndexFiles.save, list[bool | None]()

    async def saving(self: IndexFiles, pool: Pool, index: NamespaceIndex) -> bool | None:
        saved.append(await save(self, pool, index))
        return saved[-1]

    monkeypatch.setattr(IndexFiles, "save", saving)
    saved_by_itself(monkeypatch)
    ns = (await one.snapshot()).index.ns
    await packing.wait()
    async with one.pool.connection() as conn, conn.transaction():
        await entities.merge(conn, ns, entity_id("ida"), entity_id("ida brown"), "m")
    reading, go_on_reading = halted(monkeypatch, namespace_index, "read_edges")
    with monkeypatch.context() as patch:
        if not is_followed:
            patch.setattr(NamespaceIndex, "max_incremental", property(lambda _: 1))
        following = asyncio.create_task(one.snapshot())
        await reading.wait()
        monkeypatch.setattr(registry, "SAVE_PAUSE_S", 600.0)
        go_on_packing.set()
        await until(lambda: bool(saved))  # the file itself may be deleted at once, if it is useless
        assert saved == [True]
        go_on_reading.set()
        await following
    async with one.pool.connection() as conn:
        [finding] = await check_files(conn, tmp_path / "cache")
    assert finding.ok, finding
    await assert_right(one)
    await assert_right(await start())


_write = array_file.write


def slow_write(path: Path, about: bytes, arrays: Mapping[str, FileArray]) -> None:
    """As `write`, with a pause before each array."""

    class Slow(dict[str, FileArray]):
        def __getitem__(self, name: str) -> FileArray:
            time.sleep(0.0005)
            return super().__getitem__(name)

    _write(path, about, Slow(arrays))


# --- which file


async def test_a_process_goes_on_with_the_file_and_so_does_the_next(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both map the same one, although each has read the tables first."""
    one, other = await start(), await start()
    await one.ingest.add("n", [memory("a"), memory("b")])
    saved_by_itself(monkeypatch)
    for process in (one, other):
        await process.loaded()
        await until(lambda indexes=process.indexes: file_of(indexes) != "")  # type: ignore[misc]
        await assert_right(process)
    assert file_of(one.indexes) == file_of(other.indexes)
    assert len(files_in(tmp_path)) == 1


async def test_a_query_waits_for_a_file_longer_than_for_the_tables(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rather than answer from a part of the namespace."""
    one = await start()
    await one.ingest.add("n", [memory("a")])
    monkeypatch.setattr(registry, "PATIENCE_S", 0.0)
    monkeypatch.setattr(registry, "LARGE_FROM", 0)
    monkeypatch.setattr(registry, "FILE_PATIENCE_S", 60.0)
    _, go_on = halted(monkeypatch, namespace_index, "read")
    with pytest.raises(StillReading):
        await (await start()).indexes.current("n", lambda _: (), waits=False)
    go_on.set()
    await one.save()
    snapshot = await (await start()).indexes.current("n", lambda _: (), waits=False)
    assert snapshot.index.file


async def test_a_file_is_written_again_when_much_has_changed(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await saved(start)
    before = files_in(tmp_path)
    fresh = await start()
    index = await fresh.loaded()
    assert not index.needs_saving
    index.changed += 1_500
    saved_by_itself(monkeypatch)
    await fresh.ingest.add("n", [memory("b")])
    await fresh.loaded()
    await until(lambda: files_in(tmp_path) != before and len(files_in(tmp_path)) == 1)
    async with fresh.pool.connection() as conn, asyncio.timeout(60):  # the row of a file goes after the file
        while await (await conn.execute("select from index_file offset 1")).fetchall():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await assert_right(fresh)


async def test_a_worn_index_is_made_anew_once_and_its_file_with_it(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All processes switch to the new file, and none of them reads the tables again."""
    one = await start()
    await one.ingest.add("n", [memory("a")])
    await one.vectors(await one.snapshot())
    worn = (await one.snapshot()).index
    worn.removed = 10**6
    assert await one.files.save(one.pool, worn)
    [file] = files_in(tmp_path)
    read, reads = namespace_index.read, 0

    async def counted(*args: Any) -> NamespaceIndex | None:
        nonlocal reads
        reads += 1
        return await read(*args)

    monkeypatch.setattr(namespace_index, "read", counted)
    monkeypatch.setattr(registry, "RELOAD_PAUSE_S", 0.0)
    saved_by_itself(monkeypatch)
    processes = [await start(), await start()]
    renewed = (process.until(lambda index: bool(index.file) and not index.needs_reload) for process in processes)
    await asyncio.gather(*renewed)
    assert files_in(tmp_path) != [file]
    before = reads
    for process in 5 * processes:
        assert not (await process.loaded()).needs_reload
        await asyncio.sleep(0.01)
    assert reads == before <= len(processes)
    for process in processes:
        await assert_right(process)
    assert file_of(processes[0].indexes) == file_of(processes[1].indexes)


async def test_a_worn_index_serves_while_another_process_makes_the_file_anew(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await saved(start)
    process = await start()
    worn = await process.loaded()
    worn.removed = 10**6
    monkeypatch.setattr(registry, "RELOAD_PAUSE_S", 0.0)
    with process.files.lock(worn.ns) as is_mine:
        assert is_mine
        for _ in range(20):
            assert await process.loaded() is worn
            await asyncio.sleep(0.01)
    await process.until(lambda index: index is not worn)
    await assert_right(process)


@pytest.mark.parametrize("is_made_anew", [False, True])
async def test_a_worn_index_is_made_anew_where_the_folder_is_gone(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_made_anew: bool
) -> None:
    """Even if it cannot be recreated; otherwise the next file is in it."""
    process = await start()
    await process.ingest.add("n", [memory("a")])
    await process.save()
    worn = await process.loaded()
    worn.removed = 10**6
    shutil.rmtree(tmp_path / "cache")
    if not is_made_anew:
        (tmp_path / "cache").touch()
    monkeypatch.setattr(registry, "RELOAD_PAUSE_S", 0.0)
    saved_by_itself(monkeypatch)
    await process.until(lambda index: index is not worn)
    if is_made_anew:
        await until(lambda: len(files_in(tmp_path)) == 1)
    await assert_right(process)


@pytest.mark.parametrize("days", [2, -2])
async def test_a_file_that_may_hold_what_was_deleted_is_not_kept_for_long(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    """An old one is written again if anything has changed, without what was removed, even where little is left.

    What was removed counts from when its data were read. "Old" is also what is from the future of a clock set back.
    """
    one = await start()
    await one.ingest.add("n", [memory("a"), memory("b", speaker="Lucía")])
    (await one.loaded()).read_at -= days * 86_400
    await one.save()
    [path] = files_in(tmp_path)
    fresh = await start()
    index = await fresh.loaded()
    index.filed_at -= days * 86_400
    assert not index.needs_saving
    await fresh.ingest.add("n", [memory("c")])
    assert (await fresh.loaded()).needs_saving
    await fresh.ingest.delete("n", "b")
    monkeypatch.setattr(registry, "SAVE_PAUSE_S", 0.0)
    assert "Lucía".encode() in path.read_bytes()
    await fresh.loaded()
    await until(lambda: files_in(tmp_path) not in ([path], []))
    assert not any("Lucía".encode() in each.read_bytes() for each in files_in(tmp_path) if each != path)
    async with fresh.pool.connection() as conn:
        await fresh.files.tidy(conn)
    [path] = files_in(tmp_path)
    await namespaces_deleted(fresh)
    assert files_in(tmp_path) == []


async def namespaces_deleted(process: Keeper) -> None:
    """As maintenance finds it."""
    async with process.pool.connection() as conn:
        await namespaces.delete(conn, "n")
        await process.files.tidy(conn)


async def test_only_one_process_writes_at_a_time(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = await start(), await start()
    await one.ingest.add("n", [memory("a")])
    begun, go_on = halted(monkeypatch, packed_postings, "pack")
    saving = asyncio.create_task(one.save())
    await begun.wait()
    assert not await other.save()
    go_on.set()
    assert await saving


async def test_a_namespace_of_the_same_name_is_another_one(start: Start, tmp_path: Path) -> None:
    one = await start()
    await one.ingest.add("n", [memory("a", "harbour")])
    await one.save()
    async with one.pool.connection() as conn:
        await namespaces.delete(conn, "n")
    await one.ingest.add("n", [memory("b", "boats")])
    fresh = await start()
    assert files_in(tmp_path) == [], "a start removes files of namespaces that are gone"
    assert not (await fresh.loaded()).file
    assert await fresh.ids("harbour") == set()


async def test_a_start_removes_the_files_of_tables_that_were_rewritten(start: Start, tmp_path: Path) -> None:
    one = await saved(start)
    async with one.pool.connection() as conn:
        await conn.execute("vacuum full memory_change")
    fresh = await start()
    assert files_in(tmp_path) == []
    assert await fresh.save()
    assert not await one.save()
    assert len(files_in(tmp_path)) == 1


async def test_processes_that_start_together_remove_the_same_former_files(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one = await saved(start)
    async with one.pool.connection() as conn:
        await conn.execute("vacuum full memory_change")
    remove = shutil.rmtree

    def remove_after_another(folder: Path) -> None:
        remove(folder)
        remove(folder)

    monkeypatch.setattr(shutil, "rmtree", remove_after_another)
    await start()
    assert "cannot be removed" not in caplog.text


async def test_new_vectors_make_a_file_useless(start: Start) -> None:
    one = await saved(start)
    async with one.pool.connection() as conn:
        await conn.execute("update namespace set generation = generation + 1")
    assert not (await (await start()).loaded()).file


@pytest.mark.parametrize("days", [8, -8])
async def test_changes_are_kept_for_a_file_but_not_for_ever(start: Start, days: int) -> None:
    """Nor those from when the clock was ahead."""
    one = await saved(start)
    await one.ingest.add("n", [memory("b")])
    async with one.pool.connection() as conn:
        await changes.trim(conn, kept_s=0)
        fresh = await start()
        assert (await fresh.loaded()).file
        await assert_right(fresh)
        await conn.execute("update memory_change set at = now() - make_interval(days => %s)", (days,))
        await changes.trim(conn)
    fresh = await start()
    assert not (await fresh.loaded()).file
    await assert_right(fresh)


async def test_what_lacks_changes_that_are_gone_is_not_kept_in_a_file(start: Start) -> None:
    """Its process was suspended for so long."""
    one, other = await start(), await start()
    await one.ingest.add("n", [memory("a")])
    index = (await one.snapshot()).index
    await other.ingest.add("n", [memory("b")])
    async with other.pool.connection() as conn:
        await changes.trim(conn, kept_s=0)
    assert await one.files.save(one.pool, index) is False
    assert await one.save()
    await assert_right(await start())


async def test_changes_of_others_do_not_make_a_file_useless(start: Start) -> None:
    one = await saved(start)
    await one.ingest.add("other", [memory("b")])
    async with one.pool.connection() as conn:
        await changes.trim(conn, kept_s=0, kept_for_files_s=0)
    assert (await (await start()).loaded()).file


async def test_where_too_much_has_changed_everything_is_read(start: Start) -> None:
    one = await saved(start)
    async with one.pool.connection() as conn:
        await conn.execute(
            "insert into memory_change (ns, docs) select ns, array(select generate_series(0, 3000)) from namespace"
        )
    fresh = await start()
    assert not (await fresh.loaded()).file
    await assert_right(fresh)


# --- damage


async def test_a_file_that_cannot_be_used_or_removed_is_left_alone(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await saved(start)
    [path] = files_in(tmp_path)
    path.unlink()
    path.mkdir()  # nobody can remove it as a file
    fresh = await start()
    assert not (await fresh.loaded()).file
    await assert_right(fresh)
    assert "cannot be removed" in caplog.text
    assert await fresh.save()
    assert (await (await start()).loaded()).file


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut short": lambda data: data[:-1],
    "cut in half": lambda data: data[: len(data) // 2],
    "longer": lambda data: data + b"x",
    "not completed": lambda data: bytes(24) + data[24:],
    "something else": lambda data: b"\x00PNG" * 10_000,
    "a bit of the length": lambda data: flipped(data, 9),
    "a bit of the checksum": lambda data: flipped(data, 17),
    "a bit of the header's length": lambda data: flipped(data, 24),
    "a bit of the header": lambda data: flipped(data, 60),
    "a bit in the middle": lambda data: flipped(data, len(data) // 2),
    "the last bit": lambda data: flipped(data, len(data) - 1),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_a_damaged_file_is_refused_and_everything_is_read(
    start: Start, tmp_path: Path, damage: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    one = await start()
    await one.ingest.add("n", [memory("a"), memory("b")])
    await one.save()
    [path] = files_in(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    fresh = await start()
    with caplog.at_level(logging.WARNING):
        assert not (await fresh.loaded()).file
    await assert_right(fresh)
    assert f"the index file {path} is not used" in caplog.text
    assert files_in(tmp_path) == []
    await fresh.save()
    assert (await (await start()).loaded()).file


async def test_a_file_of_another_version_is_not_used(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await saved(start)
    with monkeypatch.context() as patch:
        patch.setattr("retrieval.index.files._FORMAT", 0)
        assert not (await (await start()).loaded()).file
    await one.save()
    [path] = files_in(tmp_path)
    _, arrays = array_file.read(path)
    path.unlink()
    array_file.write(path, b'{"format": "of other fields"}', arrays)
    assert not (await (await start()).loaded()).file


async def test_a_full_disk_is_a_warning(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(path: Path, about: bytes, arrays: object) -> None:
        path.write_bytes(about)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(array_file, "write", full)
    saved_by_itself(monkeypatch)
    one = await start()
    await one.ingest.add("n", [memory("a")])
    await one.loaded()
    await until(lambda: "No space left on device" in caplog.text)
    assert f"cannot be kept in {tmp_path}/" in caplog.text
    await assert_right(one)
    assert files_in(tmp_path) == files_in(tmp_path, "*.part") == []


async def test_an_older_file_in_the_place_of_a_newer_one_is_not_used(start: Start, tmp_path: Path) -> None:
    """The changes between them may be gone."""
    one = await saved(start)
    [path] = files_in(tmp_path)
    older = path.read_bytes()
    await one.ingest.add("n", [memory("b")])
    fresh = await start()
    await fresh.save()
    [path] = files_in(tmp_path)
    path.write_bytes(older)
    async with one.pool.connection() as conn:
        await changes.trim(conn, kept_s=0)
    fresh = await start()
    assert not (await fresh.loaded()).file
    await assert_right(fresh)


async def test_what_a_killed_process_was_writing_is_removed(start: Start, tmp_path: Path) -> None:
    """But not files that another process is writing."""
    one = await saved(start)
    [path] = files_in(tmp_path)
    ns = (await one.loaded()).ns
    part = path.with_suffix(".part")
    part.write_bytes(path.read_bytes()[:5_000])
    with one.files.lock(ns):
        await start()
        assert part.exists()
    await start()
    assert not part.exists()
    assert files_in(tmp_path) == [path]


async def test_a_start_leaves_alone_what_cannot_be_removed(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await saved(start)
    [path] = files_in(tmp_path)
    stray = path.with_name("1.of-nobody.index")
    stray.mkdir()
    assert (await (await start()).loaded()).file
    assert f"{stray} is of no use and cannot be removed" in caplog.text
