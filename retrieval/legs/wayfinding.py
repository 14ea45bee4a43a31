"""How a walk came to a memory, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg import AsyncConnection

from graph.arrays import array_text
from graph.inference import sentence
from graph.neighbourhood import Link
from graph.traversal import Walk

_IDS: LiteralString = "select doc, id from memory where ns = %(ns)s and doc = any(%(docs)s::integer[])"
_NAMES: LiteralString = "select entity, name from entity where ns = %(ns)s and entity = any(%(entities)s::bigint[])"


@dataclass(frozen=True, slots=True)
class Reason:
    """The names on the path to a memory, and the path as a sentence."""

    path: tuple[str, ...]
    text: str | None


async def reasons(conn: AsyncConnection[Any], ns: int, found: Walk, docs: Iterable[int]) -> dict[int, Reason]:
    """Why each of these memories was reached; by ordinal. Those beside a turn that was have no path."""
    collected = set(found.neighbourhood.docs)
    paths = {doc: found.path(doc) for doc in docs if doc in collected}
    links = [link for path in paths.values() for link in path]
    relations = [link.met.joined_by for link in links if link.met.joined_by is not None]
    ids = await _look_up(conn, _IDS, ns, "docs", {link.through for link in links if link.through is not None})
    entities = {entity for edge in relations for entity in (edge.entity, edge.joined_to)}
    entities |= {end for edge in relations for stated in edge.derivation for end in (stated.source, stated.target)}
    names = await _look_up(conn, _NAMES, ns, "entities", entities)
    return {
        doc: Reason(tuple(link.met.name for link in path), describe(path, ids, names)) for doc, path in paths.items()
    }


async def _look_up(
    conn: AsyncConnection[Any], sql: LiteralString, ns: int, name: str, wanted: Iterable[int]
) -> Mapping[int, str]:
    keys = array_text(sorted(wanted))
    return dict(await (await conn.execute(sql, {"ns": ns, name: keys}, binary=True)).fetchall())


def describe(path: Sequence[Link], ids: Mapping[int, str], names: Mapping[int, str]) -> str:
    """A path as a sentence.

    Args:
        path: as `Walk.path` gives it.
        ids: of the memories on it.
        names: of the entities of its relations.
    """
    if not path:
        return "This memory is among the closest of the other legs."
    steps = []
    for link in path:
        if link.met.joined_by is not None:
            steps.append(sentence(link.met.joined_by, names))
        elif link.through is None:
            steps.append(f"{'the' if steps else 'The'} query speaks of {link.met.name}")
        elif link.tied:
            steps.append(f"{ids.get(link.through, 'a memory')} also names {link.met.name}")
        else:
            steps.append(f"{ids.get(link.through, 'A memory')}, close to the query, names {link.met.name}")
    return f"{', '.join(steps)}, and this memory names {path[-1].met.name}."
