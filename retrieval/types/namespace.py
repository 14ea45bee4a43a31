"""Namespaces and their settings."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from graph.rules import DEFAULT_RULES, MAX_RULES, Rule, RuleError, check_count
from retrieval.errors import InvalidInput
from retrieval.types.journal import QueryLogSettings
from retrieval.types.rules import CustomRule, RuleInput


class NamespaceSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a namespace. Its language of analysis is fixed by the first memory."""

    language: Annotated[str, Meta(max_length=32)] = "auto"
    profile: Annotated[str, Meta(max_length=128)] | None = None
    rules: Annotated[
        Annotated[list[RuleInput], Meta(max_length=MAX_RULES)] | None,
        Meta(description="what follows from relations; null: rules for common relations; an empty list: nothing"),
    ] = None
    query_log: Annotated[QueryLogSettings | None, Meta(description="null: no search is logged")] = None

    def graph_rules(self) -> tuple[Rule, ...]:
        """The effective rules; the default ones if none are set.

        Raises:
            InvalidInput: an unusable rule, or too many; names the place.

        >>> from retrieval.types.rules import InverseRule
        >>> settings = NamespaceSettings(rules=[InverseRule(relation="Parent of", inverse="child-of")])
        >>> [rule.then.relation for rule in settings.graph_rules()]
        ['child_of', 'parent_of']
        """
        if self.rules is None:
            return DEFAULT_RULES
        rules: list[Rule] = []
        for position, given in enumerate(self.rules):
            try:
                rules += given.as_rules()
            except RuleError as exc:
                # only a custom rule has the fields that the error can refer to
                loc = exc.loc if isinstance(given, CustomRule) else ()
                raise InvalidInput(str(exc), loc=("rules", position, *loc)) from exc
        try:
            check_count(rules)
        except RuleError as exc:
            raise InvalidInput(str(exc), loc=("rules",)) from exc
        return tuple(rules)


class NamespaceInfo(Struct, frozen=True, kw_only=True):
    """A namespace with its settings and counts."""

    name: str
    settings: NamespaceSettings
    created_at: datetime
    memories: int
    entities: int
    mentions: int
    relations: int


class NamespaceReceipt(Struct, frozen=True, kw_only=True):
    """What deleting a namespace removed."""

    namespace: str
    deleted: dict[str, int]
