"""Teaches Schemathesis to write newline-delimited JSON, and to request what it has stored."""

from __future__ import annotations

import json
from typing import Any

import schemathesis
from schemathesis import GenerationMode


@schemathesis.serializer("application/x-ndjson")
def ndjson(_context: schemathesis.SerializationContext, value: Any) -> bytes:
    """Every other line is a memory, so that some lines are accepted and some rejected."""
    text = value if isinstance(value, str) else json.dumps(value)
    memories = [json.dumps({"id": piece[:256] or None, "text": piece}) for piece in text.splitlines()]
    return "\n".join([text, *memories]).encode("utf-8", "surrogatepass")


@schemathesis.hook
def before_call(_context: schemathesis.HookContext, case: schemathesis.Case[Any], _kwargs: dict[str, Any]) -> None:
    """Every other valid request uses one namespace and one of a few ids, so that it finds stored data."""
    names = case.path_parameters or {}
    if case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE or "ns" not in names:
        return
    if case.meta.phase.name == "stateful":  # there each request uses what the previous one created
        return
    if len(str(names["ns"])) % 2 == 0:
        names["ns"] = "fuzz"
        if "memory_id" in names:
            names["memory_id"] = f"m{len(str(names['memory_id'])) % 3}"
