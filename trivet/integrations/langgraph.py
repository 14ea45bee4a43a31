"""LangGraph's long-term memory: a `BaseStore` whose items are memories."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from trivet import AddResult, AsyncClient, Client, InvalidInput, NotFound, SearchResult, StoredMemory
from trivet.integrations import extra
from trivet.integrations.either_client import EitherClient, arun, delete, every, found, run

with extra("langgraph"):
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        InvalidNamespaceError,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        get_text_at_path,
        tokenize_path,
    )

Path = tuple[str, ...]

MAX_FOUND = 200
"""Most items that a search with a query ranks."""

ITEM = "langgraph"
"""Tag of every item. Each prefix of its namespace is a tag, too: `langgraph:users`, `langgraph:users.ana`."""

MAX_PATH_CHARS = 256 - len(f"{ITEM}:")
"""Most characters of the labels of an item's namespace and the periods between them: a tag has at most 256."""

INDEXED = "langgraph indexed"
"""Tag of the items that a query may find."""

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class TrivetStore(BaseStore):
    """Items of a graph in one namespace of Trivet, separate from its other memories.

    An item's namespace, a tuple of at most 246 characters in all, becomes tags of its memory, and its value, at most
    64 KB as JSON, its metadata. A query searches the text of the indexed fields with all legs. As in LangGraph, a
    batch's reads come before its writes. Both times of an item are those of its last change; a search without a query
    yields the oldest batch first.

    With a `Client` the asynchronous methods run in a thread; with an `AsyncClient` only those work.

    Raises (all methods):
        TrivetError: the server refuses or fails; of several writes in one batch, the valid ones are done.
    """

    def __init__(
        self, client: Client | AsyncClient, *, namespace: str | None = None, fields: Sequence[str] | None = None
    ) -> None:
        """Keep items in a namespace.

        Args:
            client: of a server or in process; it is not closed.
            namespace: Trivet's; None for the client's.
            fields: paths of the fields that a query searches, such as `text` or `turns[*].content`, where a write names
                none; None for all.
        """
        self._client = client
        self._namespace = namespace
        self._fields = fields

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do several operations; the results are in their order."""
        return run(self._client, self._done, list(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do several operations; the results are in their order."""
        return await arun(self._client, self._done, list(ops))

    async def _done(self, client: EitherClient, ops: Sequence[Op]) -> list[Result]:
        results: list[Result] = []
        writes: dict[tuple[Path, str], PutOp] = {}
        for op in ops:
            if isinstance(op, PutOp):
                writes[op.namespace, op.key] = op
                results.append(None)
            elif isinstance(op, GetOp):
                results.append(await self._get(client, op))
            elif isinstance(op, SearchOp):
                results.append(await self._search(client, op))
            elif isinstance(op, ListNamespacesOp):
                results.append(await self._namespaces(client, op))
            else:
                raise ValueError(f"unknown operation: {op!r}")
        await self._write(client, writes.values())
        return results

    async def _get(self, client: EitherClient, op: GetOp) -> Item | None:
        memory = await self._memory_of(client, _memory_id(op.namespace, op.key))
        return None if memory is None else Item(**_fields_of(memory))

    async def _memory_of(self, client: EitherClient, memory_id: str) -> StoredMemory | None:
        try:
            return await client.get(memory_id, namespace=self._namespace)
        except NotFound:
            return None

    async def _write(self, client: EitherClient, ops: Iterable[PutOp]) -> None:
        memories = [self._stored_as(op, op.value) for op in ops if op.value is not None]
        added: list[AddResult] = []
        refusal: InvalidInput | None = None
        try:
            added = await client.add(memories, namespace=self._namespace)
        except InvalidInput as exc:  # all of them are bad; deletions still go ahead
            refusal = exc
        deleted = [_memory_id(op.namespace, op.key) for op in ops if op.value is None]
        await delete(client, deleted, namespace=self._namespace)
        if refusal is not None:
            raise refusal
        for memory, result in zip(memories, added, strict=True):
            if result.status == "rejected":
                raise InvalidInput(f"the item {memory['metadata'][ITEM]} was not stored: {result.error}")

    def _stored_as(self, op: PutOp, value: Mapping[str, Any]) -> dict[str, Any]:
        fields = self._fields if op.index is None else op.index
        text = "" if fields is False else text_of(value, fields)
        tags = [_tag(op.namespace[:depth]) for depth in range(len(op.namespace) + 1)]
        return {
            "id": _memory_id(op.namespace, op.key),
            "text": text or "(not indexed)",
            "tags": [*tags, INDEXED] if text else tags,
            "metadata": {ITEM: {"namespace": op.namespace, "key": op.key}, "value": dict(value)},
        }

    async def _search(self, client: EitherClient, op: SearchOp) -> list[SearchItem]:
        wanted = op.filter or {}
        exact = {name: value for name, value in wanted.items() if isinstance(value, str | int | float)}
        filters: dict[str, Any] = {"tags_all": [_tag(op.namespace_prefix)]}
        if exact:
            filters["metadata"] = {"value": exact}
        end = op.offset + op.limit
        items: list[SearchItem] = []
        if op.query and op.query.strip():
            filters["tags_all"].append(INDEXED)
            top_k = end if exact == wanted else MAX_FOUND
            for memory, score in await self._ranked(client, op.query, filters, max(1, min(top_k, MAX_FOUND))):
                if _meets(memory.metadata["value"], wanted):
                    items.append(SearchItem(**_fields_of(memory), score=score))
            return items[op.offset : end]
        async for memory in every(client, namespace=self._namespace, **filters):
            if len(items) >= end:
                break
            if _meets(memory.metadata["value"], wanted):
                items.append(SearchItem(**_fields_of(memory)))
        return items[op.offset : end]

    async def _ranked(
        self, client: EitherClient, query: str, filters: Mapping[str, Any], top_k: int
    ) -> list[tuple[SearchResult | StoredMemory, float]]:
        """What a query finds, best first; items that say the same follow the one that stands for them."""
        ranked: list[tuple[SearchResult | StoredMemory, float]] = []
        fields = {"top_k": top_k, "filters": filters, "explain": True, "namespace": self._namespace}
        for result in await found(client, query, **fields):
            ranked.append((result, result.score))
            for duplicate in result.duplicates or ():
                memory = await self._memory_of(client, duplicate)
                if memory is not None:
                    ranked.append((memory, result.score))
        return ranked

    async def _namespaces(self, client: EitherClient, op: ListNamespacesOp) -> list[Path]:
        conditions = op.match_conditions or ()
        known = [each.path for each in conditions if each.match_type == "prefix" and "*" not in each.path]
        filters = {"tags_all": [ITEM, *(_tag(path) for path in known)]}
        paths = {
            tuple(memory.metadata[ITEM]["namespace"])
            async for memory in every(client, namespace=self._namespace, **filters)
        }
        met = {path[: op.max_depth] for path in paths if all(_matches(each, path) for each in conditions)}
        return sorted(met)[op.offset : op.offset + op.limit]


def text_of(value: Mapping[str, Any], fields: Sequence[str] | None = None) -> str:
    r"""The text of a value that a query searches: what is at some paths, or all of it, one line each.

    >>> text_of({"about": "tea", "likes": {"green": True}})
    'about: tea\nlikes green: True'
    >>> text_of({"memory": "Ana likes tea."})
    'Ana likes tea.'
    >>> text_of({"turns": [{"said": "Hello"}, {"said": "Bye"}]}, ["turns[*].said"])
    'Hello\nBye'
    """
    if fields is not None:
        parts = [path if path == "$" else tokenize_path(path) for path in fields]
        return "\n".join(text for part in parts for text in get_text_at_path(value, part) if text.strip())
    leaves = list(_leaves(value))
    if len(leaves) == 1:
        return leaves[0][1]
    return "\n".join(f"{name}: {text}" if name else text for name, text in leaves)


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The texts, numbers and booleans in a value, with the keys that lead to them."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each, f"{name} {key}".strip())
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(each, name)
    elif value is not None and str(value).strip():
        yield name, str(value)


def _memory_id(namespace: Path, key: str) -> str:
    """The id of an item's memory; keys may be longer than ids, and hold anything."""
    return f"{ITEM}:{sha256(chr(0).join((*namespace, '', key)).encode()).hexdigest()}"


def _tag(path: Path) -> str:
    """The tag of all items below a namespace."""
    for label in path:
        if not label or "." in label or "\x00" in label:
            raise InvalidNamespaceError(f"a label of a namespace must not be empty nor hold a period: {path}")
    joined = ".".join(path)
    if len(joined) > MAX_PATH_CHARS:
        raise InvalidNamespaceError(f"the labels of a namespace may take {MAX_PATH_CHARS} characters in all: {path}")
    return f"{ITEM}:{joined}" if path else ITEM


def _fields_of(memory: SearchResult | StoredMemory) -> dict[str, Any]:
    """The fields of an item."""
    return {
        "namespace": tuple(memory.metadata[ITEM]["namespace"]),
        "key": memory.metadata[ITEM]["key"],
        "value": memory.metadata["value"],
        "created_at": memory.created_at,
        "updated_at": memory.created_at,
    }


def _meets(value: Any, wanted: Any) -> bool:
    """Whether a value equals a filter, or meets its operators or fields; raises ValueError for an unknown operator."""
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compares(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, Mapping) and all(_meets(value.get(name), each) for name, each in wanted.items())
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(_meets(one, other) for one, other in zip(value, wanted, strict=True))
        )
    return bool(value == wanted)


def _compares(value: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return bool(value == operand)
    if name == "$ne":
        return bool(value != operand)
    if name not in _COMPARISONS:
        raise ValueError(f"unknown operator: {name}")
    try:
        return _COMPARISONS[name](float(value), float(operand))
    except (TypeError, ValueError):  # not a number
        return False


def _matches(condition: MatchCondition, path: Path) -> bool:
    """Whether a namespace begins or ends as a condition says, where `*` stands for any label."""
    wanted = condition.path
    part = path[: len(wanted)] if condition.match_type == "prefix" else path[len(path) - len(wanted) :]
    return len(path) >= len(wanted) and all(one in ("*", other) for one, other in zip(wanted, part, strict=True))
