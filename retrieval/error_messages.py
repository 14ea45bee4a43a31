"""Error messages for invalid JSON in its sender's terms: which field, what it accepts, and what was probably meant.

Msgspec reports where an error is; what belongs there is read from the type.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import inspect

from retrieval.errors import InvalidInput

MAX_SHOWN_CHARS = 64
"""Limit on a name or value chosen by the sender."""

_PLACE = re.compile(r" - at (?:`key` in )?`\$\.?(?P<path>[^`]*)`$")
_STEP = re.compile(r"\[(?P<item>\d+|\.\.\.)\]|(?P<field>[^.\[\]]+)")
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_NOT_ONE_OF = re.compile(r"Invalid (?:enum )?value (.*)", re.DOTALL)
_GOT = re.compile(r", got `(\w+)`$")

_IN_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a decimal number",
    "int": "a number",
    "null": "null",
    "object": "an object",
    "str": "text",
}

_ALSO_CALLED: dict[str, tuple[str, ...]] = {
    "created_at": ("date", "reference_time", "timestamp", "valid_at"),
    "expires_at": ("expiration_date", "invalid_at"),
    "memories": ("messages", "texts"),
    "metadata": ("meta", "payload"),
    "min_relevance": ("min_score", "score_threshold", "threshold"),
    "min_similarity": ("similarity_threshold",),
    "mode": ("search_type", "strategy"),
    "query": ("q", "query_text", "question", "text"),
    "query_timestamp": ("reference_date",),
    "rescore": ("rerank", "reranker"),
    "session_id": ("chat_id", "conversation_id", "run_id", "thread_id"),
    "speaker": ("author", "role", "sender"),
    "tags": ("categories", "labels"),
    "text": ("content", "data", "episode_body", "memory", "message", "page_content"),
    "top_k": ("k", "limit", "n_results", "num_results"),
}
"""Names that other programs use for our fields."""

_TENANTS = ("agent_id", "app_id", "bank_id", "group_id", "group_ids", "namespace", "user_id")
"""Fields in which other programs name the tenant in the body."""

_Types = Sequence[inspect.Type]


def invalid_input(exc: msgspec.ValidationError, expected: Any) -> InvalidInput:
    """The error, with the path of its field, from msgspec's message and the expected type.

    >>> from retrieval.types.search import SearchRequest
    >>> try:
    ...     _ = msgspec.json.decode(b'{"query": "tea", "mode": "magic"}', type=SearchRequest)
    ... except msgspec.ValidationError as exc:
    ...     error = invalid_input(exc, SearchRequest)
    >>> error.loc, str(error)
    (('mode',), "must be one of adaptive, bm25, graph, hybrid, vector, not 'magic'")
    """
    fault = str(exc)
    path = ""
    if place := _PLACE.search(fault):
        path, fault = place["path"], fault[: place.start()]
    loc: list[str | int] = []
    types: _Types = [inspect.type_info(expected)]
    holders = types
    for step in _STEP.finditer(path):
        holders = _alternatives(types)
        loc.append(step["field"] or (int(step["item"]) if step["item"].isdigit() else "*"))
        types = [inner for holder in holders for inner in _inside(holder, step["field"])]
    if missing := _MISSING.fullmatch(fault):
        return InvalidInput(f"is required: {_field(types, missing[1])}", loc=(*loc, missing[1]))
    if unknown := _UNKNOWN.fullmatch(fault):
        return InvalidInput(_unknown(types, unknown[1]), loc=(*loc, unknown[1]))
    if fault == "Number out of range":
        return InvalidInput("must be a finite number", loc=tuple(loc))
    if place is not None and "`key` in" in place[0]:
        keys = [holder.key_type for holder in _alternatives(types) if isinstance(holder, inspect.DictType)]
        return InvalidInput(f"each key must be {_described(keys)}", loc=tuple(loc))
    wanted = _described(types) if types else f"one of {', '.join(_tags(holders))}"
    if value := _NOT_ONE_OF.fullmatch(fault):
        return InvalidInput(f"must be {wanted}, not {_shortened(value[1])}", loc=tuple(loc))
    got = f", not {_IN_WORDS.get(kind[1], kind[1])}" if (kind := _GOT.search(fault)) else ""
    message = f"must be {wanted}{got}" if loc else f"expected {wanted}{got}"
    if kind and (meant := _wrapped(types, kind[1], loc)):
        message += f"; did you mean {{{meant}}}?"
    return InvalidInput(message, loc=tuple(loc))


def _alternatives(types: Iterable[inspect.Type]) -> list[inspect.Type]:
    """The alternatives of the types without null."""
    return [each for each in _opened(types) if not isinstance(each, inspect.NoneType)]


def _opened(types: Iterable[inspect.Type]) -> Iterator[inspect.Type]:
    """The types inside annotations and unions."""
    for type_ in types:
        if isinstance(type_, inspect.Metadata):
            yield from _opened([_with_items(type_)])
        elif isinstance(type_, inspect.UnionType):
            yield from _opened(type_.types)
        else:
            yield type_


def _with_items(annotated: inspect.Metadata) -> inspect.Type:
    """The annotated type; for a list of undecoded JSON with the item type that `extra` gives."""
    inner = annotated.type
    items = (annotated.extra or {}).get("items")
    if items is not None and isinstance(inner, inspect.ListType):
        return msgspec.structs.replace(inner, item_type=inspect.type_info(items))
    return inner


def _inside(holder: inspect.Type, field: str | None) -> Iterator[inspect.Type]:
    """The types of the field with that name, or without a name of the items of a list or object."""
    if isinstance(holder, inspect.StructType):
        yield from (each.type for each in holder.fields if each.encode_name == field)
    elif isinstance(holder, inspect.ListType | inspect.VarTupleType):
        yield holder.item_type
    elif isinstance(holder, inspect.TupleType):
        yield from holder.item_types
    elif isinstance(holder, inspect.DictType):
        yield holder.value_type


def _structs(types: _Types) -> list[inspect.StructType]:
    return [each for each in _alternatives(types) if isinstance(each, inspect.StructType)]


def _tags(types: _Types) -> list[str]:
    return [str(each.tag) for each in _structs(types) if each.tag is not None]


def _field(types: _Types, name: str) -> str:
    """What a field accepts; a union's tag is not a field of its structs."""
    inner = [type_ for struct in _structs(types) for type_ in _inside(struct, name)]
    return _described(inner) if inner else f"one of {', '.join(_tags(types))}"


def _unknown(types: _Types, name: str) -> str:
    """Where an unknown field may belong, what was probably meant, or which fields exist."""
    structs = _structs(types)
    fields = {field.encode_name: field for struct in structs for field in struct.fields}
    for outer, field in fields.items():
        lists = [inner for each in _alternatives([field.type]) for inner in _inside(each, None)]
        if any(name == inner.encode_name for struct in _structs(lists) for inner in struct.fields):
            return f'there is no such field here; did you mean {{"{outer}": [{{"{name}": …}}]}}?'
        if any(name == inner.encode_name for struct in _structs([field.type]) for inner in struct.fields):
            return f'there is no such field here; did you mean {{"{outer}": {{"{name}": …}}}}?'
    if name == "max_tokens":
        return "there is no such field; a context pack has it"
    if name in _TENANTS:
        return "there is no such field; each tenant has a namespace: in the path, or `namespace=` in Python"
    return f"there is no such field; {meant_or_known(name, fields)}"


def meant_or_known(name: str, known: Collection[str]) -> str:
    """The known name that an unknown one probably means, or else all of them.

    >>> meant_or_known("limit", ("query", "top_k")), meant_or_known("colour", ("query", "top_k"))
    ('did you mean `top_k`?', 'there are query, top_k')
    """
    lowered = name.casefold()
    meant = next((ours for ours, others in _ALSO_CALLED.items() if lowered in others and ours in known), None)
    # `id` is not a misspelt `kind`, nor `results` a misspelt `relations`.
    close = get_close_matches(lowered, known, n=1, cutoff=0.7) if len(name) > 2 else []
    if meant := meant or next(iter(close), None):
        return f"did you mean `{meant}`?"
    return f"there are {', '.join(known)}" if len(known) > 1 else f"the only one is {', '.join(known)}"


def _wrapped(types: _Types, got: str, loc: Sequence[str | int]) -> str:
    """What was probably meant by a value instead of a list, or by a list instead of the object that holds it."""
    for wanted in _alternatives(types):
        if isinstance(wanted, inspect.ListType | inspect.VarTupleType) and got not in ("null", "array"):
            return f'"{loc[-1]}": […]'
        if isinstance(wanted, inspect.StructType) and got == "array":
            for field in wanted.fields:
                if field.required and isinstance(_alternatives([field.type])[0], inspect.ListType):
                    return f'"{field.encode_name}": […]'
    return ""


def _described(types: _Types) -> str:
    """What the types accept, in words."""
    said = dict.fromkeys(_in_words(each) for each in _alternatives(types))
    may_be_null = any(isinstance(each, inspect.NoneType) for each in _opened(types))
    return " or ".join([*said, *(["null"] if may_be_null else [])])


def _in_words(type_: inspect.Type) -> str:
    match type_:
        case inspect.StrType():
            return "text" + _within(" of", type_.min_length, type_.max_length, " characters")
        case inspect.IntType():
            return "a whole number" + _within("", type_.ge, type_.le)
        case inspect.FloatType():
            return (
                "a number" + (f" above {type_.gt:g}" if type_.gt is not None else "") + _within("", type_.ge, type_.le)
            )
        case inspect.BoolType():
            return "true or false"
        case inspect.DateTimeType():
            return "a time with a zone (such as 2023-05-08T13:56:00Z)"
        case inspect.EnumType():
            return f"one of {', '.join(sorted(str(each.value) for each in type_.cls))}"
        case inspect.LiteralType():
            return ("one of " if len(type_.values) > 1 else "") + ", ".join(map(str, type_.values))
        case inspect.TupleType():
            return f"a list of {len(type_.item_types)}"
        case inspect.ListType() | inspect.VarTupleType():
            return "a list" + _within(" of", type_.min_length, type_.max_length)
        case inspect.StructType():
            required = [f"`{field.encode_name}`" for field in type_.fields if field.required]
            return "a JSON object" + (f" with {', '.join(required)}" if required else "")
        case inspect.DictType():
            return "a JSON object"
    return "JSON"


def _within(of: str, least: float | None, most: float | None, unit: str = "") -> str:
    """The bounds of a number, or of a length.

    >>> _within(" of", 1, 256, " characters"), _within("", 0, None)
    (' of 1 to 256 characters', ' of at least 0')
    """
    if least is not None and most is not None:
        return f"{of or ' from'} {least:,g} to {most:,.10g}{unit}"
    if least is not None:
        return f" of at least {least:,g}{unit}"
    return f" of at most {most:,.10g}{unit}" if most is not None else ""


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + "…"
