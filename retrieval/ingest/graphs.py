"""What memories add to the graph; recomputed for those that mention an entity by an alias that is no longer given."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, LiteralString

import msgspec

from graph import store as graph_store
from graph.extraction import extract
from graph.graph_rows import DocGraph, GivenEntity, GivenRelation
from graph.statements import find_relations
from graph.store import Alias
from postgres.arrays import array_text
from postgres.connection import Connection, fetch
from retrieval.store import changes
from retrieval.store.namespaces import ALLOW_LONG_STATEMENTS
from retrieval.types.memory import MemoryInput

_READ_AT_ONCE = 200

_MENTIONED_IN: LiteralString = """
    select distinct doc from mention where ns = %(ns)s and entity = any(%(entities)s::bigint[])
"""
_READ: LiteralString = """
    select doc, text, title, speaker, entities, relations from memory
    where ns = %(ns)s and doc = any(%(docs)s::integer[])
"""
_LOCK: LiteralString = """
    select doc from memory where ns = %(ns)s and doc = any(%(docs)s::integer[]) order by doc for key share
"""


def graph_of(memory: MemoryInput) -> DocGraph:
    """What a memory adds to the graph; its ordinal is not yet known."""
    stated = [GivenRelation(item.source, item.type, item.target) for item in memory.relations]
    stated += find_relations(memory.text, speaker=memory.speaker, title=memory.title)
    return DocGraph(
        doc=0,
        mentions=tuple(extract(memory.text, title=memory.title, speaker=memory.speaker)),
        entities=tuple(GivenEntity(item.name, item.type, tuple(item.aliases)) for item in memory.entities),
        relations=tuple(dict.fromkeys(stated)),
    )


class TextsByAlias:
    """Reads the memories that mention entities by aliases with some keys; each once, in one transaction.

    Most can thus be read before `graph.store.take_aliases`, after which other writers wait.
    """

    def __init__(self, conn: Connection, ns: int, keys: Collection[str]) -> None:
        self._conn = conn
        self._ns = ns
        self._keys = frozenset(keys)
        self._read: set[int] = set()
        self._graphs: list[DocGraph] = []

    async def read(self, aliases: Collection[Alias]) -> None:
        """Read the memories that mention an entity by one of these aliases and were not read before."""
        if not aliases:
            return
        await self._conn.execute(ALLOW_LONG_STATEMENTS)
        docs = await self._docs(_MENTIONED_IN, entities=array_text({alias.entity for alias in aliases}))
        unread = sorted(docs - self._read)
        for start in range(0, len(unread), _READ_AT_ONCE):
            some = {"ns": self._ns, "docs": array_text(unread[start : start + _READ_AT_ONCE])}
            rows = await fetch(self._conn, _READ, some)
            self._graphs += await asyncio.to_thread(_graphs_by_key, rows, self._keys)
        self._read |= docs

    async def graphs(self, aliases: Collection[Alias]) -> list[DocGraph]:
        """What these memories add to the graph, by ordinal; locks them until the transaction ends."""
        await self.read(aliases)
        keys = {alias.key for alias in aliases}
        found = [graph for graph in self._graphs if not keys.isdisjoint(graph.may_be_aliases())]
        locked = await self._docs(_LOCK, docs=array_text(graph.doc for graph in found)) if found else set()
        return sorted((graph for graph in found if graph.doc in locked), key=lambda graph: graph.doc)

    async def _docs(self, sql: LiteralString, **parameters: str) -> set[int]:
        return {doc for (doc,) in await fetch(self._conn, sql, {"ns": self._ns, **parameters})}

    async def rewrite_mentions(self, aliases: Collection[Alias]) -> None:
        """Rewrite the graph of the memories that use these former aliases, from their texts."""
        graphs = await self.graphs(aliases)
        if graphs:
            docs = [graph.doc for graph in graphs]
            described = await graph_store.write(self._conn, self._ns, graphs, removed=docs)
            await changes.record(self._conn, self._ns, [changes.ENTITIES, *docs], described=described)


def _graphs_by_key(rows: Sequence[tuple[Any, ...]], keys: frozenset[str]) -> list[DocGraph]:
    """The graphs of the rows of `_READ` whose words include a key."""
    # A plural differs from its key in the last letters, a date in every letter.
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
