"""Every statement of the project is limited to one namespace, except those for all of them."""

from __future__ import annotations

import re

import psycopg
import pytest

from tests.conftest import PostgresServer
from tests.statements import FOR_ALL_NAMESPACES, Statement, for_all, statements_of, tables_of_namespaces, unbound

_PREDICATE = re.compile(r"\b(\w+\.)?ns = (%\(ns\)s|\w+\.ns)")


@pytest.fixture(scope="module")
def statements() -> list[Statement]:
    """All of the project."""
    return statements_of("retrieval", "graph", "classifier")


@pytest.fixture(scope="module")
def tables(postgres_server: PostgresServer) -> frozenset[str]:
    """The tables that have the column `ns`."""
    with psycopg.connect(postgres_server.database(postgres_server.template)) as db:
        return tables_of_namespaces(db)


def test_every_statement_binds_the_namespace_on_every_table_that_has_one(
    statements: list[Statement], tables: frozenset[str]
) -> None:
    loose = {each.where: each.unbound(tables) for each in statements if not for_all(each.text)}
    assert {where: left for where, left in loose.items() if left} == {}
    assert len(statements) > 100, "they are constants of modules no more"


def test_what_is_for_all_namespaces_is_one_statement_each(statements: list[Statement], tables: frozenset[str]) -> None:
    exempt = [(part, each) for each in statements for part in for_all(each.text)]
    assert sorted(part for part, _ in exempt) == sorted(FOR_ALL_NAMESPACES)
    assert all(each.unbound(tables) for _, each in exempt), "it needs no exemption"


def test_no_predicate_can_be_taken_out_of_a_statement_unnoticed(
    statements: list[Statement], tables: frozenset[str]
) -> None:
    taken_out = [
        Statement(each.where, each.text[: predicate.start()] + "true" + each.text[predicate.end() :])
        for each in statements
        for predicate in _PREDICATE.finditer(each.text)
        if not for_all(each.text)
    ]
    assert [each for each in taken_out if not each.unbound(tables)] == []
    assert len(taken_out) > 100


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("select from memory where ns = $1", []),
        ("select from memory where ns = $2", ["memory"]),
        ("select from memory where ns <> $1", ["memory"]),
        ("select from memory where ns = $1 or doc = $2", ["memory"]),
        ("select from memory m, turn t where m.ns = t.ns", ["memory", "turn"]),
        ("select from memory m, turn t where m.ns = t.ns and t.ns = $1", []),
        ("select from memory m left join turn t on m.ns = $1 and t.ns = $1", ["memory"]),
        ("select from memory m left join turn t on t.ns = m.ns where m.ns = $1", []),
        ("select (select count(*) from turn t where t.ns = m.ns) from memory m where m.ns = $1", []),
        ("select (select count(*) from turn t where t.doc = m.doc) from memory m where m.ns = $1", ["turn"]),
        ("select from memory where ns = $1 union all select from memory", ["memory"]),
        ("with gone as (delete from turn returning ns, doc) select from gone where ns = $1", ["turn"]),
        ("delete from turn using memory m where turn.doc = m.doc and m.ns = $1", ["turn"]),
        ("update turn set place = 0 from unnest($2::int[]) as x (ns) where turn.ns = x.ns", ["turn"]),
        ("update namespace set next_doc = 0", ["namespace"]),
        ("select from namespace where name = $2", []),
        ("insert into turn (ns, doc) select $1, unnest($2::int[])", []),
        ("insert into turn (ns, doc) values ($1, 0), ($2, 1)", ["turn"]),
        ("insert into turn (doc) values ($1)", ["turn"]),
        ("delete from turn where ctid = any(array(select ctid from turn where ns = $1))", []),
        ("delete from turn where ctid = any(array(select ctid from memory where ns = $1))", ["turn"]),
        ("copy turn (doc) from stdin", ["turn"]),
        ("truncate turn", ["turn"]),
    ],
)
def test_what_binds_a_table(statement: str, left: list[str], tables: frozenset[str]) -> None:
    assert unbound(statement, frozenset({1}), tables) == left
