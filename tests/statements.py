"""Whether SQL statements keep to one namespace, read with PostgreSQL's own parser.

It cannot check whether a statement gets the right number, the values of a `copy`, or statements that are composed
at run time, unless they are run and recorded.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import psycopg
from pglast import ast, parse_sql
from pglast.enums import A_Expr_Kind, BoolExprType, JoinType
from pglast.parser import ParseError

from postgres.prepared import PreparedStatement

FOR_ALL_NAMESPACES = {
    "::text[] is null or n.name = any(": "lists them",
    "from namespace where settings->>'embedder' <>": "says which embedders are needed",
    "from namespace where next_doc >=": "finds the largest, to read them before anybody asks",
    "count(*) from bm25_tail t join namespace": "tells how much is not compacted, for the state of the server",
    "from job j join namespace n": "lists the jobs of all",
    "as outside (first)": "finds vectors that are to enter the index",
    "from namespace n where next_doc >= %(least)s and": "finds what is to be compacted",
    "delete from memory_change c where at not between": "forgets old changes of all",
    "select token::text from index_file": "tells which files are of use",
    "from shadow_run where live =": "sums up a profile, which is one for all",
    "join namespace n on n.ns = j.ns": "finds whose query log is too long",
}
"""Parts of the statements that are for all namespaces, and why they are."""

_VERB = re.compile(r"\s*(select|insert|update|delete|with|copy|merge|truncate)\b", re.IGNORECASE)
_PLACE = re.compile(r"%\((\w+)\)[sbt]")
_CONDITION = re.compile(r"<(?:condition|visible|eligible)>")
_STATEMENTS = (ast.SelectStmt, ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt)


class _Same(dict[str, str]):
    """Every name, as itself."""

    def __missing__(self, key: str) -> str:
        return key


def tables_of_namespaces(db: psycopg.Connection[Any]) -> frozenset[str]:
    """The tables that have the column `ns`."""
    rows = db.execute("select table_name from information_schema.columns where column_name = 'ns'").fetchall()
    return frozenset(table for (table,) in rows)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the project with psycopg's parameters, and the constant that contains it."""

    where: str
    text: str

    def unbound(self, tables: frozenset[str]) -> list[str]:
        """The tables that it does not bind to the parameter `ns`."""
        names = list(dict.fromkeys(["ns", *_PLACE.findall(self.text)]))
        numbered = _PLACE.sub(lambda place: f"${names.index(place[1]) + 1}", self.text).replace("%%", "%")
        return unbound(numbered, frozenset({1}), tables)


def for_all(statement: str) -> list[str]:
    """The keys of `FOR_ALL_NAMESPACES` that a statement contains."""
    return [part for part in FOR_ALL_NAMESPACES if part in " ".join(statement.split())]


def has_rows(statement: str) -> bool:
    """Whether a text begins like a statement that reads or writes rows."""
    return _VERB.match(statement) is not None


def statements_of(*packages: str) -> list[Statement]:
    """Every statement among the constants of these packages' modules, except those that measure whole databases.

    A condition inserted at run time is replaced by `true`.
    """
    found: dict[str, str] = {}
    for module in _modules(packages):
        for name, value in vars(module).items():
            for text in filter(has_rows, _texts(value, set())):
                found.setdefault(text, f"{module.__name__}.{name}")
    statements = (_whole(Statement(where, text)) for text, where in found.items())
    return [statement for statement in statements if statement is not None]


def _modules(packages: Sequence[str]) -> Iterator[ModuleType]:
    for package in packages:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
            if not module.name.endswith("__main__"):
                with suppress(ImportError):  # modules of an extra that is not installed have no statements
                    yield importlib.import_module(module.name)


def _texts(value: object, seen: set[int]) -> Iterator[str]:
    """The texts in a value; a container that contains itself is read once."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, str):
        yield value
    elif isinstance(value, PreparedStatement):
        names = [name.decode() for name in value.values(_Same()) if name is not None]
        yield re.sub(r"\$(\d+)", lambda place: f"%({names[int(place[1]) - 1]})s", value.text.replace("%", "%%"))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each, seen)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each, seen)


def _whole(statement: Statement) -> Statement | None:
    """A statement that can be parsed; None for English that begins with a verb of SQL."""
    whole = Statement(statement.where, _CONDITION.sub("true", statement.text))
    with suppress(ParseError):
        whole.unbound(frozenset())
        return whole
    return None


def unbound(statement: str, numbers: frozenset[int], tables: frozenset[str]) -> list[str]:
    """The tables that a statement does not bind to a namespace.

    A table is bound if its column `ns` must equal the namespace's number, or that of another bound relation; inserted
    rows must have one. `namespace` may also be bound by its unique `name`.

    Args:
        statement: parameters as `$1`.
        numbers: the parameters that are the namespace's number.
        tables: all that have a column `ns`.
    """
    reading = _Reading(numbers, tables)
    for raw in parse_sql(statement):
        reading.visit(raw.stmt, frozenset())
    return reading.unbound


@dataclass(slots=True)
class _Relation:
    """An item after `from`: a table with namespaces, or a `with` or subquery, which are checked separately."""

    alias: str
    table: str | None
    bound: bool


@dataclass(slots=True)
class _Reading:
    numbers: frozenset[int]
    tables: frozenset[str]
    unbound: list[str] = field(default_factory=list)

    def visit(self, node: Any, ctes: frozenset[str], outer: frozenset[str] = frozenset()) -> None:
        if isinstance(node, tuple):
            for each in node:
                self.visit(each, ctes, outer)
        elif _is(node, *_STATEMENTS):
            self._statement(node, ctes, outer)
        elif _is(node, ast.CopyStmt) and node.relation is not None:
            if node.is_from and node.relation.relname in self.tables and "ns" not in _names(node.attlist):
                self.unbound.append(node.relation.relname)
        elif _is(node, ast.RangeVar):  # in an unknown place
            self.unbound += {node.relname} & self.tables - ctes
        elif _is(node, ast.Node):
            for name in node:
                self.visit(getattr(node, name), ctes, outer)

    def _statement(self, node: Any, ctes: frozenset[str], outer: frozenset[str]) -> None:
        if node.withClause is not None:
            ctes |= {cte.ctename for cte in node.withClause.ctes}
        relations: list[_Relation] = []
        conditions: list[tuple[Any, frozenset[str] | None]] = []
        handled = {"relation", "fromClause", "usingClause"}
        sources: list[Any] = []
        if _is(node, ast.InsertStmt):
            self._inserted(node)
        else:
            sources = [getattr(node, name) for name in handled if getattr(node, name, None) is not None]
            for source in sources:
                self._add(source, relations, conditions, ctes)
            conditions += [(each, None) for each in _conjuncts(getattr(node, "whereClause", None))]
            self._bind(relations, conditions, outer)
            self.unbound += [each.table for each in relations if each.table and not each.bound]
        seen = outer | {each.alias for each in relations}
        for source in sources:
            self._inside(source, ctes, seen)
        for name in node:
            if name not in handled:
                self.visit(getattr(node, name), ctes, seen)

    def _add(self, source: Any, relations: list[_Relation], conditions: list[Any], ctes: frozenset[str]) -> None:
        """The relations of a `from`, and the conditions of its joins with the relations that each may bind."""
        if isinstance(source, tuple):
            for each in source:
                self._add(each, relations, conditions, ctes)
        elif _is(source, ast.JoinExpr):
            before = len(relations)
            self._add(source.larg, relations, conditions, ctes)
            between = len(relations)
            self._add(source.rarg, relations, conditions, ctes)
            sides = {
                JoinType.JOIN_INNER: relations[before:],
                JoinType.JOIN_LEFT: relations[between:],
                JoinType.JOIN_RIGHT: relations[before:between],
            }
            may_bind = frozenset(each.alias for each in sides.get(source.jointype, []))
            conditions += [(each, may_bind) for each in _conjuncts(source.quals)]
        elif _is(source, ast.RangeVar):
            alias = source.alias.aliasname if source.alias else source.relname
            if source.relname in ctes:
                relations.append(_Relation(alias, None, bound=True))
            elif source.relname in self.tables:
                relations.append(_Relation(alias, source.relname, bound=False))
        elif _is(source, ast.RangeSubselect) and source.alias is not None:
            relations.append(_Relation(source.alias.aliasname, None, bound=True))

    def _inside(self, source: Any, ctes: frozenset[str], seen: frozenset[str]) -> None:
        """The contents of a `from` except the names of tables: subqueries, functions, conditions."""
        if isinstance(source, tuple):
            for each in source:
                self._inside(each, ctes, seen)
        elif _is(source, ast.JoinExpr):
            self._inside((source.larg, source.rarg), ctes, seen)
            self.visit(source.quals, ctes, seen)
        elif not _is(source, ast.RangeVar):
            self.visit(source, ctes, seen)

    def _bind(self, relations: list[_Relation], conditions: list[Any], outer: frozenset[str]) -> None:
        by_alias = {each.alias: each for each in relations}
        for _ in relations:
            for condition, may_bind in conditions:
                for one, other in _both_ways(condition):
                    bound = self._relation(one, by_alias)
                    if bound is None or not (may_bind is None or bound.alias in may_bind):
                        continue
                    known = self._relation(other, by_alias)
                    if (
                        self._is_number(other)
                        or (known is not None and known.bound)
                        or (known is None and _column(other)[0] in outer and _column(other)[1] == "ns")
                    ):
                        bound.bound = True
        for each in relations:
            if each.table is not None:
                each.bound = each.bound or any(_names_one(condition, each) for condition, _ in conditions)

    def _relation(self, node: Any, by_alias: Mapping[str, _Relation]) -> _Relation | None:
        """The relation whose column `ns` a node is."""
        alias, column = _column(node)
        if column != "ns":
            return None
        if alias is not None:
            return by_alias.get(alias)
        of_tables = [each for each in by_alias.values() if each.table is not None]
        return of_tables[0] if len(of_tables) == 1 else None

    def _is_number(self, node: Any) -> bool:
        node = _uncast(node)
        return _is(node, ast.ParamRef) and node.number in self.numbers

    def _inserted(self, node: Any) -> None:
        table = node.relation.relname
        if table not in self.tables or table == "namespace":  # which assigns the numbers
            return
        columns = [column.name for column in node.cols or ()]
        rows: list[Any] = []
        if "ns" in columns and node.selectStmt is not None:
            at = columns.index("ns")
            values = node.selectStmt.valuesLists
            rows = [row[at] for row in values] if values else [node.selectStmt.targetList[at].val]
        if not rows or not all(self._is_number(row) or _column(row)[1] == "ns" for row in rows):
            self.unbound.append(table)


def _is(node: Any, *kinds: type[ast.Node]) -> bool:
    """Hidden from mypy, for which every part of a node may be missing."""
    return isinstance(node, kinds)


def _names(nodes: Any) -> list[str]:
    return [node.sval for node in nodes or ()]


def _uncast(node: Any) -> Any:
    return _uncast(node.arg) if _is(node, ast.TypeCast) else node


def _column(node: Any) -> tuple[str | None, str | None]:
    """The alias, if any, and the name of a column."""
    node = _uncast(node)
    if not _is(node, ast.ColumnRef) or not all(_is(part, ast.String) for part in node.fields):
        return None, None
    *alias, name = _names(node.fields)
    return (alias[0] if alias else None), name


def _conjuncts(node: Any) -> Iterator[Any]:
    """The conditions that must all hold."""
    if _is(node, ast.BoolExpr) and node.boolop == BoolExprType.AND_EXPR:
        for each in node.args:
            yield from _conjuncts(each)
    elif node is not None:
        yield node


def _both_ways(condition: Any) -> Iterator[tuple[Any, Any]]:
    if _is(condition, ast.A_Expr) and condition.kind == A_Expr_Kind.AEXPR_OP and _names(condition.name) == ["="]:
        yield condition.lexpr, condition.rexpr
        yield condition.rexpr, condition.lexpr


def _names_one(condition: Any, relation: _Relation) -> bool:
    """Whether a condition picks a namespace by name, or rows by the places of rows of the same table."""
    if relation.table == "namespace":
        return any(
            _column(one) in ((relation.alias, "name"), (None, "name")) and _is(_uncast(other), ast.ParamRef)
            for one, other in _both_ways(condition)
        )
    if not _is(condition, ast.A_Expr) or _column(condition.lexpr)[1] != "ctid":
        return False
    chosen: Any = getattr(condition.rexpr, "subselect", None)  # which is read separately
    return (
        _is(chosen, ast.SelectStmt)
        and [_column(target.val)[1] for target in chosen.targetList] == ["ctid"]
        and [getattr(source, "relname", None) for source in chosen.fromClause] == [relation.table]
    )
