"""Which stored entities a name in a query refers to, and which it must not."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg import AsyncConnection

from graph import store
from graph.extraction import extract
from graph.graph_rows import DocGraph, GivenEntity
from graph.linking import complete
from graph.stopwords import words
from tests.linking import link

NS = 7


async def seeds(conn: AsyncConnection[Any], names: list[str], query: str) -> dict[str, str]:
    """The seeds of a query in a namespace with just these names, and how each one matched."""
    await store.write(conn, NS, [DocGraph(doc, entities=[GivenEntity(name)]) for doc, name in enumerate(names, 1)])
    return {seed.name: seed.how for seed in await link(conn, NS, query)}


async def test_a_name_means(conn: AsyncConnection[Any], subtests: pytest.Subtests) -> None:
    cases: list[tuple[list[str], str, dict[str, str]]] = [
        # Case, punctuation, possessive, plural.
        (["Maria"], "what did maria do", {"Maria": "exact"}),
        (["Maria"], "Maria's house", {"Maria": "exact"}),
        (["Hewlett-Packard"], "who runs Hewlett Packard?", {"Hewlett-Packard": "exact"}),
        (["support groups"], "which support group?", {"support groups": "alias"}),
        # Initials.
        (["J. K. Rowling"], "books by J.K. Rowling", {"J. K. Rowling": "exact"}),
        (["J. K. Rowling"], "books by JK Rowling", {"J. K. Rowling": "spelling"}),
        (["JK Rowling"], "books by J. K. Rowling", {"JK Rowling": "spelling"}),
        (["J.R.R. Tolkien"], "what did jrr tolkien write", {"J.R.R. Tolkien": "spelling"}),
        (["George Washington"], "Did G. Washington swim?", {"George Washington": "similar"}),
        # Titles.
        (["Dr. Smith"], "Call Doctor Smith", {"Dr. Smith": "spelling"}),
        (["Dr. Smith"], "what did Smith say", {"Dr. Smith": "similar"}),
        (["Smith"], "what did Dr. Smith say", {"Smith": "exact"}),
        (["Dr. Strange"], "Dr. Who", {}),
        # Nicknames, both ways.
        (["Melanie"], "What did Mel say?", {"Melanie": "nickname"}),
        (["Melanie"], "what did mel say?", {"Melanie": "nickname"}),
        (["Mel"], "What did Melanie say?", {"Mel": "nickname"}),
        (["Elizabeth"], "Where is Liz?", {"Elizabeth": "nickname"}),
        (["Mike"], "Where is Michael?", {"Mike": "nickname"}),
        (["Michael Portnoy"], "the drums of Mike Portnoy", {"Michael Portnoy": "nickname"}),
        (["Melanie Brown"], "What did Mel say?", {"Melanie Brown": "similar"}),
        (["Mel", "Melanie"], "What did Mel say?", {"Mel": "exact", "Melanie": "nickname"}),
        # A nickname of two people, or of somebody's rival, is nobody's.
        (["Melanie", "Melissa"], "What did Mel say?", {}),
        (["Melanie Brown", "Melissa"], "What did Mel say?", {}),
        (["Mel", "Melissa"], "What did Melanie say?", {}),
        (["William"], "who pays the bill?", {}),
        (["William"], "Who did Bill pay?", {"William": "nickname"}),
        # Beginnings of a name.
        (["Gabriela"], "What did Gabri say?", {"Gabriela": "similar"}),
        (["Gabriela", "Gabriele"], "What did Gabri say?", {}),
        (["Caroline"], "What did Caro say?", {"Caroline": "nickname"}),
        (["Melbourne"], "What did Mel say?", {}),
        (["Melbourne", "Mel"], "What did Mel say?", {"Mel": "exact"}),
        (["Marianne"], "What did Maria say?", {}),
        (["Marianne", "Maria"], "What did Maria say?", {"Maria": "exact"}),
        # No letters within a word, no letters apart.
        (["Iran"], "Is Tigran here?", {}),
        (["Tigran"], "Where is Iran?", {}),
        (["Anna"], "Where is Hannah?", {}),
        (["Rome"], "Where is Romeo?", {}),
        # Scripts without spaces, and particles after a name.
        (["李明", "さくら"], "李明和さくらはどこで知り合った？", {"李明": "exact", "さくら": "exact"}),
        (["민수"], "민수는 어디에 살아?", {"민수": "exact"}),
        (["山田 健太"], "健太はどこですか", {"山田 健太": "similar"}),
        # Given names of one person and of several.
        (["Caroline Brown"], "Where is Caroline?", {"Caroline Brown": "similar"}),
        (["Caroline Brown"], "where is caroline", {"Caroline Brown": "similar"}),
        (["Caroline Brown", "Caroline"], "Caroline Brown?", {"Caroline Brown": "exact", "Caroline": "exact"}),
        # Acronyms.
        (["United Nations"], "Who leads the UN?", {"United Nations": "acronym"}),
        (["United Nations"], "Who leads the U.N.?", {"United Nations": "acronym"}),
        (["UN"], "Who leads the United Nations?", {"UN": "acronym"}),
        (["UN"], "who leads the united nations", {"UN": "acronym"}),
        (["UN", "United Nations"], "Who leads the UN?", {"UN": "exact", "United Nations": "acronym"}),
        (["Bank of America"], "an account at BOA", {"Bank of America": "acronym"}),
        (["United States of America"], "a flight to the USA", {"United States of America": "acronym"}),
        (["United Nations", "Union North"], "Who leads the UN?", {}),
        (["UN", "Union North"], "Who leads the United Nations?", {}),
        (["United Nations"], "un bon repas", {}),
        (["Nations United"], "Who leads the UN?", {}),
        (["CB"], "Who is Clara Berg?", {}),
        (["Clara Berg Dahl"], "What is the CBD?", {}),
    ]
    for names, query, expected in cases:
        with subtests.test(names=names, query=query):
            async with conn.transaction(force_rollback=True):
                assert await seeds(conn, names, query) == expected


async def test_the_only_bearer_of_a_name_counts_for_more_than_one_of_two(conn: AsyncConnection[Any]) -> None:
    await seeds(conn, ["Caroline Brown", "Oslo", "Maria Green", "Maria White"], "x")
    scores = {seed.name: seed.score for seed in await link(conn, NS, "Caroline in Oslo with Maria")}
    assert scores["Oslo"] > scores["Caroline Brown"] > 2 * scores["Maria Green"]


async def test_a_longer_known_name_covers_what_lies_inside(conn: AsyncConnection[Any]) -> None:
    await seeds(conn, ["New York Times", "York", "New York"], "x")
    found = await link(conn, NS, "who owns the new york times?")
    assert found[0].name == "New York Times"
    assert all(seed.score < 0.2 for seed in found[1:])


async def test_two_spellings_of_a_name_cover_each_other_not(conn: AsyncConnection[Any]) -> None:
    await seeds(conn, ["UN", "United Nations", "Nations"], "x")
    scores = {seed.name: seed.score for seed in await link(conn, NS, "Who leads the United Nations?")}
    assert scores["UN"] > 0.8
    assert scores["Nations"] < 0.2


async def test_words_of_the_text_are_nobodys_nickname(conn: AsyncConnection[Any]) -> None:
    await store.write(conn, NS, [DocGraph(1, extract("we split the bill after the meal"))])
    assert await link(conn, NS, "What did William say?") == []


async def test_a_resolved_name_leaves_no_trace(conn: AsyncConnection[Any]) -> None:
    before = await seeds(conn, ["Mel", "Melanie"], "Mel?")
    assert before == {"Mel": "exact", "Melanie": "nickname"}
    await store.write(conn, NS, [DocGraph(9, entities=[GivenEntity("Melissa")])])
    assert {seed.name: seed.how for seed in await link(conn, NS, "Mel?")} == {"Mel": "exact"}
    await store.write(conn, NS, (), removed=[9])
    assert {seed.name: seed.how for seed in await link(conn, NS, "Mel?")} == before


async def test_which_names_a_beginning_completes_does_not_depend_on_the_plan(conn: AsyncConnection[Any]) -> None:
    """More names begin with it than are read: always the same ones are, however the database joins."""
    given = [GivenEntity(f"Gabriela {name}") for name in words("Abreu Braga Costa Dias Esteves Faria Gomes Horta Inês")]
    given += [
        GivenEntity(f"Gabriela {name}") for name in words("Jorge Klein Leal Maia Neto Orta Paz Reis Sá Teles Vaz")
    ]
    for doc, each in enumerate(given, 1):
        await store.write(conn, NS, [DocGraph(doc, entities=[each])])
    by_loop = await complete(conn, NS, ["gabri"], [])
    await conn.execute("set enable_nestloop = off")
    await conn.execute("set enable_mergejoin = off")
    by_hash = await complete(conn, NS, ["gabri"], [])
    assert len(by_loop) == 16
    assert {each.entity for each in by_loop} == {each.entity for each in by_hash}
