"""Names of entities: which are indexed, and that a renamed one is found by its current name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from graph.adjacency import Adjacency
from graph.extraction import TOKENIZED_TYPES
from graph.linking import possible_names
from graph.names import entity_id
from retrieval.index import entity_rows
from retrieval.index.entity_names import EntityNames
from retrieval.index.entity_rows import Aliases, Entities
from retrieval.index.slots import Slots
from retrieval.store import migrate
from retrieval.store.entities import BY_HAND
from tests.unit.index.test_columns import copied

ALIVE = np.ones(10, np.bool_)
UNMERGED: Mapping[int, int] = {}


def entities(*rows: tuple[str, str | None, bool]) -> Entities:
    ids = np.array([entity_id(key) for key, _, _ in rows], np.int64)
    return Entities(ids, [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])


def graph(*keys: str) -> Adjacency:
    """One in which a memory mentions these."""
    ids = np.array([entity_id(key) for key in keys], np.int64)
    return Adjacency((ids, np.zeros(len(ids), np.int32), np.ones(len(ids), np.float32)), ())


def found(
    names: EntityNames, query: str, mentioned: Adjacency, roots: dict[int, int] | None = None
) -> set[tuple[str, str]]:
    """How a query names which entities."""
    candidates = names.find(possible_names(query), partial(mentioned.mentions, cap=1), roots or {}, ALIVE)
    return {(each.how, each.name) for each in candidates}


def test_the_types_without_names_are_those_of_the_statements() -> None:
    folder = Path(migrate.__file__).parent / "sql" / "migrations"
    for text in (entity_rows._IS_NAME, (folder / "0018_entity_names.sql").read_text(encoding="utf-8")):
        [written] = re.findall(r"'\{([a-z,]+)\}'::text\[\]", text)
        assert {*written.split(",")} == TOKENIZED_TYPES


def test_a_common_phrase_needs_no_name() -> None:
    names = EntityNames()
    names.put(entities(("painting class", None, False), ("ida", "Ida", True), ("may 2023", "May 2023", False)))
    assert names.rows_of([entity_id("painting class")]) == {}
    mentioned = graph("painting class", "ida", "may 2023", "boats")
    assert found(names, "Did Ida go to the painting class in May 2023?", mentioned) == {
        ("exact", "painting class"),
        ("exact", "Ida"),
        ("exact", "May 2023"),
    }


def test_what_no_memory_mentions_is_not_found() -> None:
    names = EntityNames()
    names.put(entities(("ida", "Ida", True), ("ida bo", "Ida Bo", True)))
    assert found(names, "Who is Ida?", graph("ida bo")) == {("similar", "Ida Bo")}


def test_one_that_is_described_anew() -> None:
    """As a name, and as a phrase again, which no word of it finds; also after it was in a file."""
    names, mentioned = EntityNames(), graph("zoë bo")
    for is_name, shown, by_word in ((False, "zoë Bo", set()), (True, "Zoë Bo", {("similar", "Zoë Bo")})) * 2:
        names.put(entities(("zoë bo", shown, is_name)))
        assert found(names, "Who is Zoë Bo?", mentioned) == {("exact", shown)}
        assert found(names, "Who is Zoë?", mentioned) == by_word
        assert names.is_consistent
        names, former = EntityNames(), names
        names.restore(copied(former.arrays()))


@pytest.mark.parametrize("query", ["Who is José Muñoz?", "Who is Jose Munoz?", "where did munoz go", "José?"])
def test_a_name_is_found_with_and_without_its_diacritics(query: str) -> None:
    names, mentioned = EntityNames(), graph("josé muñoz", "jose munoz", "josh")
    names.put(entities(("josé muñoz", "José Muñoz", True), ("jose munoz", "Jose Munoz", True), ("josh", "Josh", True)))
    assert {name for _, name in found(names, query, mentioned)} == {"José Muñoz", "Jose Munoz"}
    assert names.is_consistent


def test_an_alias_counts_as_long_as_its_memory_or_the_one_by_hand() -> None:
    names, mentioned, porto = EntityNames(), graph("porto"), entities(("porto", "Porto", True))
    names.put_aliases(Aliases(["oporto"], np.array([3]), porto), Slots())
    names.put_aliases(Aliases(["invicta"], np.array([BY_HAND]), porto), Slots())
    ALIVE[3] = False
    try:
        assert found(names, "Where is Oporto?", mentioned) == set()
    finally:
        ALIVE[3] = True
    assert (
        found(names, "Where is Oporto?", mentioned)
        == found(names, "Where is Invicta?", mentioned)
        == {("alias", "Porto")}
    )
    names.put_by_hand(Aliases((), np.empty(0, np.int64), entities()), Slots())
    assert found(names, "Where is Oporto or Invicta?", mentioned) == {("alias", "Porto")}
    assert found(names, "Where is Invicta?", mentioned) == set()


def test_what_is_said_again_takes_no_room() -> None:
    """The names of roots, and the aliases by hand, are replaced with each change of entities."""
    names, porto = EntityNames(), entities(("porto", "Porto", True))
    by_hand = Aliases(["invicta"], np.array([BY_HAND]), porto)
    sizes = []
    for _ in range(3):
        names.put(porto, porto.ids.tolist())
        names.put_by_hand(by_hand, Slots())
        arrays = names.arrays()
        sizes.append([arrays["_names._text.needed"], arrays["_aliases._docs.needed"]])
        assert found(names, "Where is Invicta?", graph("porto")) == {("alias", "Porto")}
    assert sizes[0] == sizes[1] == sizes[2]


def test_a_merged_entity_is_found_as_its_root() -> None:
    """Which may be a common phrase."""
    names, roots = EntityNames(), {entity_id("invicta"): entity_id("the city")}
    names.put(entities(("invicta", "Invicta", True), ("the city", None, False)), roots.values())
    assert found(names, "Where is Invicta?", graph("the city"), roots) >= {("alias", "the city")}
