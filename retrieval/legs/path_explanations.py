"""Explaining in words how the graph walk reached a memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from graph.inference import sentence
from graph.neighbourhood import Neighbourhood
from graph.paths import Link
from graph.resolution import Seed
from postgres.connection import Connection
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.legs.base import GraphPath
from retrieval.store import entities as stored_entities


async def paths_to(
    conn: Connection,
    index: NamespaceIndex,
    neighbourhood: Neighbourhood,
    seeds: Sequence[Seed],
    docs: NDArray[np.int64],
) -> dict[int, GraphPath]:
    """The paths to some memories, by slot; empty if reached only as a neighbour in a session or document."""
    collected = set(neighbourhood.docs)
    paths = {doc: neighbourhood.path(doc) for doc in docs.tolist() if doc in collected}
    links = [link for path in paths.values() for link in path]
    relations = [link.joined_by for link in links if link.joined_by is not None]
    through = sorted({link.through for link in links if link.through is not None})
    ids = dict(zip(through, index.memories.ids.get(np.array(through, np.int64)), strict=True))
    entities = {link.entity for link in links}
    entities |= {entity for edge in relations for entity in (edge.entity, edge.joined_to)}
    entities |= {end for edge in relations for stated in edge.derivation for end in (stated.source, stated.target)}
    names = {seed.entity: seed.name for seed in seeds}
    unnamed = await stored_entities.describe(conn, index.ns, entities - names.keys())
    names |= {entity: each.name for entity, each in unnamed.items()}
    unsure = {seed.entity for seed in seeds if seed.how == "similar"}
    beside = GraphPath((), "This memory stands next to one that was reached.")
    return dict.fromkeys(docs.tolist(), beside) | {
        doc: GraphPath(tuple(_name(link, names) for link in path), describe(path, ids, names, unsure))
        for doc, path in paths.items()
    }


def describe(
    path: Sequence[Link], ids: Mapping[int, str], names: Mapping[int, str], unsure: Collection[int] = ()
) -> str:
    """A path of a `Neighbourhood` as a sentence, given ids of the memories and names of the entities on it.

    An entity without a name is shown by its number; `unsure` means that the query has only part of its name.
    """
    if not path:
        return "This memory is among the closest of the other legs."
    steps = []
    for link in path:
        if link.joined_by is not None:
            steps.append(sentence(link.joined_by, names))
        elif link.through is None:
            mentions = "may mention" if link.entity in unsure else "mentions"
            steps.append(f"{'the' if steps else 'The'} query {mentions} {_name(link, names)}")
        elif link.tied:
            steps.append(f"{ids.get(link.through, 'a memory')} also mentions {_name(link, names)}")
        else:
            steps.append(f"{ids.get(link.through, 'A memory')}, close to the query, mentions {_name(link, names)}")
    return f"{', '.join(steps)}, and this memory mentions {_name(path[-1], names)}."


def _name(link: Link, names: Mapping[int, str]) -> str:
    return names.get(link.entity, str(link.entity))
