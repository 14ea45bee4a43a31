"""What memories add to the graph; anew for those that mention an entity by an alias that nobody gives any more."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, LiteralString

import msgspec
from psycopg import AsyncConnection

from graph import store as graph_store
from graph.extraction import extract
from graph.statements import find_relations
from graph.store import Alias, DocGraph, GivenEntity, GivenRelation
from postgres.arrays import array_text
from retrieval.store import changes
from retrieval.store.namespaces import ALLOW_LONG_STATEMENTS
from retrieval.types.memory import MemoryInput

_READ_AT_ONCE = 200

_MENTIONING = """
    select doc, text, title, speaker, entities, relations from memory
    where ns = %(ns)s and doc > %(after)s and doc = any(array(
        select doc from mention where ns = %(ns)s and entity = any(%(entities)s::bigint[])
    ))
    order by doc limit %(limit)s
"""
_HOLD: LiteralString = """
    select doc from memory where ns = %(ns)s and doc = any(%(docs)s::integer[]) order by doc for key share
"""


def graph_of(memory: MemoryInput) -> DocGraph:
    """What a memory, whose ordinal is not known yet, adds to the graph."""
    stated = [GivenRelation(item.source, item.type, item.target) for item in memory.relations]
    found = find_relations(memory.text, speaker=memory.speaker, title=memory.title)
    stated += [GivenRelation(item.source, item.relation, item.target) for item in found]
    return DocGraph(
        doc=0,
        mentions=tuple(extract(memory.text, title=memory.title, speaker=memory.speaker)),
        entities=tuple(GivenEntity(item.name, item.type, tuple(item.aliases)) for item in memory.entities),
        relations=tuple(dict.fromkeys(stated)),
    )


async def mention_anew(conn: AsyncConnection[Any], ns: int, aliases: Collection[Alias]) -> None:
    """Have memories mention what their words say where they do it by some former aliases, in the transaction."""
    graphs = await graphs_by_alias(conn, ns, aliases)
    if graphs:
        docs = [graph.doc for graph in graphs]
        described = await graph_store.write(conn, ns, graphs, removed=docs)
        await changes.record(conn, ns, [changes.ENTITIES, *docs], described=described)


async def graphs_by_alias(conn: AsyncConnection[Any], ns: int, aliases: Collection[Alias]) -> list[DocGraph]:
    """What the memories add to the graph that mention an entity by its alias, one of those given.

    They are read from the tables, in order of their ordinals, and stay until the caller's transaction ends.
    """
    graphs: list[DocGraph] = []
    if not aliases:
        return graphs
    await conn.execute(ALLOW_LONG_STATEMENTS)
    keys = {alias.key for alias in aliases}
    asked = {"ns": ns, "entities": array_text({alias.entity for alias in aliases}), "limit": _READ_AT_ONCE}
    after = -1
    while rows := await (await conn.execute(_MENTIONING, {**asked, "after": after})).fetchall():
        graphs += await asyncio.to_thread(_graphs_by_key, rows, keys)
        after = rows[-1][0]
    docs = array_text(graph.doc for graph in graphs)
    held = {doc for (doc,) in await (await conn.execute(_HOLD, {"ns": ns, "docs": docs})).fetchall()}
    return [graph for graph in graphs if graph.doc in held]


def _graphs_by_key(rows: Sequence[tuple[Any, ...]], keys: set[str]) -> list[DocGraph]:
    """The graphs of those of `_MENTIONING`'s rows whose words are some keys."""
    # A plural differs from its key in the last letters, a date in all of them.
    stems = [
        [word[:-1] if len(word) > 3 else word for word in key.split() if not any(map(str.isdigit, key))] for key in keys
    ]
    graphs = []
    for doc, text, title, speaker, entities, relations in rows:
        named = chain.from_iterable((each["source"], each["target"]) for each in relations)
        folded = unicodedata.normalize("NFKC", " ".join((text, title or "", speaker or "", *named))).casefold()
        if any(all(stem in folded for stem in words) for words in stems):
            memory = msgspec.convert(
                {"text": text, "title": title, "speaker": speaker, "entities": entities, "relations": relations},
                MemoryInput,
            )
            graph = replace(graph_of(memory), doc=doc)
            if not keys.isdisjoint(graph.may_be_aliases()):
                graphs.append(graph)
    return graphs
