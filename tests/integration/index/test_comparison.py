"""Comparing index files with the tables: correct files, and every possible fault of an undamaged one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.segments import NO_SEGMENT
from retrieval.index import array_file, comparison
from retrieval.index.comparison import check_files
from retrieval.types.memory import EntityInput, RelationInput
from retrieval.types.state import Finding
from tests.integration.index import test_files
from tests.integration.index.test_files import Keeper, Start, files_in
from tests.integration.index.test_registry import memory

Arrays = dict[str, NDArray[Any]]

every_namespace_is_large, pool, start = test_files.every_namespace_is_large, test_files.pool, test_files.start


async def saved(start: Start) -> Keeper:
    """A process that has written its index of some turns and documents that state relations."""
    one = await start()
    turns = [
        memory(f"t{number}", f"{number} boats?", session_id="s", speaker=f"Zoë {number}", tags=["ü"])
        for number in range(4)
    ]
    stated = [
        memory(
            f"d{number}",
            title=f"Title {number}",
            document_id="d",
            entities=[EntityInput(name="Ida", aliases=["Idchen"])],
            relations=[RelationInput(source="Ida", type=type_, target=target)],
        )
        for number, (type_, target) in enumerate([("in", "Porto"), ("near", "Faro"), ("in", "Faro")])
    ]
    await one.ingest.add("n", [*turns, *stated])
    await one.save()
    return one


async def findings(keeper: Keeper, folder: Path | None) -> list[Finding]:
    async with keeper.pool.connection() as conn:
        return await check_files(conn, folder)


def damage(path: Path, change: Callable[[Arrays], None]) -> None:
    """Change a file's content, with a matching checksum."""
    about, mapped = array_file.read(path)
    arrays = {name: array.copy() for name, array in mapped.items()}
    change(arrays)
    path.unlink()
    array_file.write(path, about, arrays)


async def test_a_file_that_is_right_with_what_has_changed_since(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "FEW_VECTORS", 3)
    one = await saved(start)
    await one.ingest.add("n", [memory("t1", "another text", speaker="Bo"), memory("new")])
    await one.ingest.delete("n", "d0")
    files = files_in(tmp_path)
    [finding] = await findings(one, tmp_path / "cache")
    assert finding == Finding("index n", True, "7 memories are as in the tables")
    assert files_in(tmp_path) == files


def added(name: str, number: int = 1, at: Any = slice(None)) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name][at] += np.array(number, arrays[name].dtype)

    return change


def filled(name: str, value: Any) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name][...] = value

    return change


def reversed_(name: str) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name][...] = arrays[name][::-1].copy()

    return change


def merged(arrays: Arrays) -> None:
    arrays["roots"] = np.array([[1, 2]], np.int64)


def by_hand(arrays: Arrays) -> None:
    arrays["names._aliases._docs.values"][0] = -1


DAMAGES: dict[str, tuple[Callable[[Arrays], None], str]] = {
    "a memory that is not there": (added("memories.alive.values", 1, 7), "memories (1)"),
    "a memory too few": (filled("memories.alive.values", False), "memories (7)"),
    "slots": (added("memories.slots._offset"), "memories (2)"),
    "ids": (added("memories.ids._text.values", 1, 0), "columns (1)"),
    "lengths": (added("memories.length.values"), "columns (7)"),
    "times of creation": (added("memories.created.values", 1, 2), "columns (1)"),
    "expiry": (added("memories.expires.values", -1), "columns (7)"),
    "supersession": (added("memories.superseded.values", -1), "columns (7)"),
    "traits": (added("memories.traits.values"), "columns (7)"),
    "questions": (filled("memories.asks.values", True), "columns (3)"),
    "kinds": (filled("memories.kinds.codes.values", 7), "columns (7)"),
    "speakers": (filled("memories.speakers.codes.values", 0), "columns (6)"),
    "sessions": (added("memories.sessions.values._strings._text.values"), "columns (4)"),
    "hashes of documents": (added("memories.documents.values._index.hashes"), "columns (3)"),
    "titles": (reversed_("memories.titles.codes.values"), "columns ("),
    "tags": (filled("memories.tags.codes.values", -1), "columns (4)"),
    "names": (added("memories.names._index.hashes"), "names of speakers (1)"),
    "neighbours": (filled("memories.previous.values", -1), "neighbours (3)"),
    "vectors": (added("vectors._context.high.values"), "vectors (7)"),
    "lower bits of a turn's vector": (added("vectors._text.low.values", 1, 0), "vectors (1)"),
    "a turn that has no vector of its own": (filled("vectors._text_row.values", -1), "vectors ("),
    "edges that are gone": (filled("graph._home", NO_SEGMENT), "edges ("),
    "weights": (filled("graph.0.levels", 0.01), "edges ("),
    "memories of an entity": (reversed_("graph.0.docs"), "indexes of the graph (1)"),
    "entities of a memory": (reversed_("graph.0.entities"), "edges ("),
    "relations": (added("graph.relations.rows", 1, (0, 2)), "relations (1)"),
    "relations by target": (reversed_("graph.relations.by_target"), "indexes of the graph (1)"),
    "relations by memory": (added("graph.relations.docs"), "indexes of the graph (1)"),
    "order of relations": (reversed_("graph.relations.rows"), "indexes of the graph (1)"),
    "memories of a term": (reversed_("postings.docs"), "postings ("),
    "frequencies": (added("postings.tfs", 1, 0), "postings (1)"),
    "terms": (added("postings.terms", 1, -1), "postings ("),
    "order of terms": (reversed_("postings.terms"), "postings (7)"),
    "postings of a term": (added("postings.starts", 1, 0), "postings (7)"),
    "keys of entities": (added("names._keys._text.values"), "indexes of names (1)"),
    "ids of entities": (added("names._ids.values", 1, 0), "indexes of names (1)"),
    "names of entities": (added("names._names._text.values"), "names of entities ("),
    "names that are phrases": (filled("names._are_names.values", False), "names of entities ("),
    "hashes of ids": (added("names._by_id.hashes"), "indexes of names (1)"),
    "words of names": (added("names._by_word.hashes", 1, 0), "indexes of names (1)"),
    "aliases": (added("names._aliases._keys._text.values", 1, 0), "aliases (1)"),
    "hashes of aliases": (added("names._aliases._by_key.hashes"), "indexes of names (1)"),
    "whose aliases they are": (added("names._aliases._entities.values", 1, 1), "aliases (1)"),
    "aliases that are gone": (filled("names._aliases._docs.values", -2), "aliases (3)"),
    "aliases by hand": (by_hand, "aliases by hand (1)"),
    "merged entities": (merged, "merged entities (1)"),
}


async def test_whatever_is_wrong_in_a_file_is_found(start: Start, tmp_path: Path, subtests: pytest.Subtests) -> None:
    """Even if its checksum is right."""
    one = await saved(start)
    [path] = files_in(tmp_path)
    content = path.read_bytes()
    for name, (change, found) in DAMAGES.items():
        with subtests.test(damage=name):
            path.unlink(missing_ok=True)  # the process has mapped the first
            path.write_bytes(content)
            damage(path, change)
            [finding] = await findings(one, tmp_path / "cache")
            assert not finding.ok
            assert found in finding.detail
            assert f"stop the server and delete {path}" in finding.detail
            path.unlink()
            assert [finding.ok for finding in await findings(one, tmp_path / "cache")] == [True]


async def test_arrays_that_do_not_fit_together(start: Start, tmp_path: Path) -> None:
    one = await saved(start)
    [path] = files_in(tmp_path)
    damage(path, filled("graph.0.codes", 10_000))
    [finding] = await findings(one, tmp_path / "cache")
    assert not finding.ok
    assert "cannot be read" in finding.detail


async def test_a_file_that_is_not_used_is_no_fault(start: Start, tmp_path: Path) -> None:
    """As the next server rebuilds it; until then it stays."""
    one = await saved(start)
    async with one.pool.connection() as conn:
        await conn.execute("update namespace set generation = generation + 1")
    [path] = files_in(tmp_path)
    [finding] = await findings(one, tmp_path / "cache")
    assert finding.ok
    assert f"{path} is no longer used" in finding.detail
    assert path.exists()


async def test_where_there_are_no_files(start: Start, tmp_path: Path) -> None:
    one = await start()
    await one.ingest.add("n", [memory("a")])
    for folder, detail in ((None, "not kept in files"), (tmp_path / "none", f"no files in {tmp_path / 'none'}")):
        assert await findings(one, folder) == [Finding("indexes", True, detail)]
    assert not (tmp_path / "none").exists()
