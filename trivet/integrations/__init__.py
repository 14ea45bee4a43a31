"""Trivet in other frameworks: one module for each, which needs the extra of its name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import msgspec

from trivet import SearchResult, TrivetError

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import a framework's packages within this block.

    Raises:
        ImportError: one is missing; names the extra that brings it.
    """
    try:
        yield
    except ModuleNotFoundError as exc:
        raise ImportError(f"{exc.name} is missing: pip install 'trivet[{name}]'", name=exc.name) from exc


def metadata_of(result: SearchResult) -> dict[str, Any]:
    """What is known about a memory besides its text, as JSON types."""
    known: dict[str, Any] = msgspec.to_builtins(result)
    shown = (
        "title", "kind", "speaker", "session_id", "document_id", "created_at", "tags", "score", "relevance", "legs",
    )  # fmt: skip
    return {**result.metadata, **{name: known[name] for name in shown}}


def failing_with(
    failure: Callable[[str], Exception], tool: Callable[P, Awaitable[T]], *errors: type[TrivetError]
) -> Callable[P, Awaitable[T]]:
    """A tool that fails as its framework wants, with the messages of these errors."""

    @wraps(tool)
    async def failing(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return await tool(*arguments, **named)
        except errors as exc:
            raise failure(str(exc)) from exc

    return failing


def recalled(result: SearchResult) -> dict[str, Any]:
    """What an assistant's tool returns for a memory."""
    return {"id": result.id, "created_at": result.created_at, "speaker": result.speaker, "text": result.text}


def storable(text: str) -> str:
    r"""A text without what no memory may contain: null bytes and halves of surrogate pairs.

    >>> storable("tea\x00\ud800 ")
    'tea '
    """
    return text.encode("utf-8", "ignore").decode().replace("\x00", "")
