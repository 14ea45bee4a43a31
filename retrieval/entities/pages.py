"""The page of one entity: its memories by time, its relations, the entities it is met with, a short profile."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graph.adjacency import in_mask
from graph.inference import triple_text
from graph.visible import MAX_EVIDENCE, Relation
from retrieval.answer.snippet import snippet
from retrieval.entities.view import MAX_TIES, EntityView, entity_code
from retrieval.errors import InvalidInput
from retrieval.index.columns import from_microseconds
from retrieval.store import entities, memories
from retrieval.store.entities import BY_HAND, StoredEntity, StoredMerge
from retrieval.store.memories import HydratedRows
from retrieval.types.entity import EntityMemory, EntityMerge, EntityPage, EntityRelation, MetEntity

MAX_RELATIONS = 50
MAX_MET = 20
MET_RECENT = 1_000
"""Number of latest memories searched for entities met with the page's entity."""

MAX_ALIASES = 200
PROFILE_RELATIONS = 6
PROFILE_FACTS = 4

_CURSOR = re.compile(r"(-?[0-9]{1,18})\.([0-9]{1,10})")


async def entity_page(view: EntityView, entity: StoredEntity, *, cursor: str | None, limit: int) -> EntityPage:
    """The page of an entity with at most `limit` memories; raises InvalidInput for a cursor that no page gave."""
    docs = view.graph.docs_of(entity.entity)
    created = view.snapshot.index.memories.created.values[docs]
    order = np.lexsort((-docs, -created))  # the latest first
    docs, created = docs[order], created[order]
    after = _after(view, docs, created, cursor)
    shown, facts = after[:limit], _facts(view, docs)
    relations, is_cut = view.graph.relations_of(entity.entity)
    relations, is_cut = relations[:MAX_RELATIONS], is_cut or len(relations) > MAX_RELATIONS
    names = await view.described({end for each in relations for end in (each.source, each.target)})
    relations = [each for each in relations if each.source in names and each.target in names]
    texts = await _read(view, entity, np.union1d(shown, facts))
    met, met_is_cut = await _met_with(view, entity.entity)
    merged = await entities.merged_into(view.conn, view.ns, entity.entity)
    return EntityPage(
        id=entity_code(entity.entity),
        name=entity.name,
        type=entity.type,
        aliases=await aliases_of(view, entity, merged),
        mentions=len(docs),
        first_mentioned_at=from_microseconds(int(created[-1])) if len(docs) else None,
        last_mentioned_at=from_microseconds(int(created[0])) if len(docs) else None,
        profile=_profile(view, relations, [texts[doc] for doc in facts.tolist() if doc in texts]),
        memories=[texts[doc] for doc in shown.tolist() if doc in texts],
        next_cursor=_cursor(view, int(shown[-1])) if len(after) > limit else None,
        relations=[_relation(view, each) for each in relations],
        met_with=met,
        merged=[
            EntityMerge(merge_id=each.merge, id=entity_code(each.entity), name=each.name, merged_at=each.merged_at)
            for each in merged
        ],
        truncated=is_cut or met_is_cut,
    )


async def aliases_of(view: EntityView, entity: StoredEntity, merged: Sequence[StoredMerge]) -> list[str]:
    """The other names of an entity: those of entities merged into it, given by hand, or from visible memories."""
    family = [entity.entity, *(each.entity for each in merged)]
    names = [each.name for each in merged]
    for name, docs in await entities.aliases(view.conn, view.ns, family, limit=MAX_ALIASES):
        slots = view.snapshot.index.memories.slots.from_ordinals(docs[docs != BY_HAND])
        if BY_HAND in docs or in_mask(slots, view.seen.eligible).any():
            names.append(name)
    return sorted(set(names) - {entity.name})


def _after(
    view: EntityView, docs: NDArray[np.int64], created: NDArray[np.int64], cursor: str | None
) -> NDArray[np.int64]:
    """The memories after the page that returned the cursor, which has the time and ordinal of its last memory."""
    if cursor is None:
        return docs
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInput("is not a cursor that an earlier page gave", loc=("cursor",))
    time, ordinal = map(int, match.groups())
    ordinals = view.snapshot.index.memories.slots.to_ordinals(docs.copy())
    after: NDArray[np.int64] = docs[(created < time) | ((created == time) & (ordinals < ordinal))]
    return after


def _cursor(view: EntityView, doc: int) -> str:
    memories_ = view.snapshot.index.memories
    return f"{memories_.created.values[doc]}.{memories_.slots.to_ordinal_list([doc])[0]}"


def _facts(view: EntityView, docs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The latest memories of kind `memory`; the latest of all if there are none."""
    kinds = view.snapshot.index.memories.kinds
    facts = docs[np.isin(kinds.codes.values[docs], kinds.codes_of(["memory"]))]
    return (facts if len(facts) else docs)[:PROFILE_FACTS]


async def _read(view: EntityView, entity: StoredEntity, docs: NDArray[np.int64]) -> dict[int, EntityMemory]:
    """Memories by slot; those deleted meanwhile are absent."""
    ordinals = view.snapshot.index.memories.slots.to_ordinal_list(docs.tolist())
    pending = await memories.hydrate(view.conn, view.ns, ordinals)
    hydrated = HydratedRows(await pending.rows())
    language = view.snapshot.namespace.settings.language
    read = {doc: hydrated.get(ordinal) for doc, ordinal in zip(docs.tolist(), ordinals, strict=True)}
    return {
        doc: EntityMemory(
            id=memory.id,
            snippet=snippet(memory.text, entity.name, language),
            kind=memory.kind,
            speaker=memory.speaker,
            created_at=memory.created_at,
        )
        for doc, memory in read.items()
        if memory is not None
    }


async def _met_with(view: EntityView, entity: int) -> tuple[list[MetEntity], bool]:
    ties, is_cut = view.graph.ties_of(entity, most=MAX_TIES, recent=MET_RECENT, counts=view.may_be_shown)
    known = await view.shown([tie.other for tie in ties])
    met = [tie for tie in ties if tie.shared and tie.other in known]
    met.sort(key=lambda tie: (-tie.shared, -tie.strength, tie.other))
    shown = [
        MetEntity(
            id=entity_code(tie.other),
            name=known[tie.other].name,
            type=known[tie.other].type,
            memories=tie.shared,
            evidence=view.ids(tie.docs),
        )
        for tie in met[:MAX_MET]
    ]
    return shown, is_cut or len(met) > MAX_MET


def _relation(view: EntityView, relation: Relation) -> EntityRelation:
    return EntityRelation(
        source=view.named(relation.source),
        type=relation.relation,
        target=view.named(relation.target),
        memories=len(relation.docs),
        evidence=view.ids(relation.docs[:MAX_EVIDENCE]),
    )


def _profile(view: EntityView, relations: list[Relation], facts: list[EntityMemory]) -> list[str]:
    names = {end: view.named(end).name for each in relations for end in (each.source, each.target)}
    stated = [triple_text(each.source, each.relation, each.target, names) for each in relations[:PROFILE_RELATIONS]]
    return stated + [f"{fact.created_at:%Y-%m-%d}: {fact.snippet}" for fact in facts]
