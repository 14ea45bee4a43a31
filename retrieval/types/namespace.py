"""Namespaces and their settings."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from graph.rules import DEFAULT_RULES, MAX_PREMISES, MAX_RULES, Atom, Rule, RuleError
from graph.rules import inverse as inverse_rules
from graph.rules import symmetric as symmetric_rule
from graph.rules import transitive as transitive_rule
from retrieval.errors import InvalidInput
from retrieval.types.memory import Label, Zoned

_LANGUAGE = "the language of word analysis, such as `english`; `auto`: each word by its script"


class SymmetricRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="symmetric"):
    """If the relation holds from x to y, it holds from y to x."""

    relation: Label

    def as_rules(self) -> tuple[Rule, ...]:
        """The graph's rules."""
        return (symmetric_rule(self.relation),)


class InverseRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="inverse"):
    """Two relations that are each other's inverse."""

    relation: Label
    inverse: Label

    def as_rules(self) -> tuple[Rule, ...]:
        """The graph's rules: one in each direction."""
        return inverse_rules(self.relation, self.inverse)


class TransitiveRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="transitive"):
    """If the relation holds from x to y and from y to z, it holds from x to z."""

    relation: Label

    def as_rules(self) -> tuple[Rule, ...]:
        """The graph's rules."""
        return (transitive_rule(self.relation),)


Triple = Annotated[tuple[Label, Label, Label], Meta(description="a variable, a relation and a variable")]


class CustomRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="custom"):
    """If all of `when` hold for some entities, `then` does too; entities are variables such as `x`."""

    name: Label
    when: Annotated[list[Triple], Meta(min_length=1, max_length=MAX_PREMISES)]
    then: Triple

    def as_rules(self) -> tuple[Rule, ...]:
        """The graph's rule."""
        return (Rule(self.name, tuple(Atom(*triple) for triple in self.when), Atom(*self.then)),)


RuleInput = SymmetricRule | InverseRule | TransitiveRule | CustomRule
EmbedderName = Annotated[str, Meta(min_length=1, max_length=256)]
"""`all-MiniLM-L6-v2`, which is bundled, `multilingual-e5-small`, or a provider's model: PROVIDER/MODEL."""

DEFAULT_EMBEDDER: EmbedderName = "all-MiniLM-L6-v2"
Redaction = Literal["email", "phone", "number", "url", "all"]


class QueryLogSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of a namespace's searches, for replay and labelling, and for how long."""

    max_entries: Annotated[int, Meta(ge=1, le=1_000_000, description="beyond these the oldest are deleted")] = 10_000
    max_age_days: Annotated[int, Meta(ge=1, le=36_500, description="null: no limit")] | None = 30
    redact: Annotated[
        tuple[Redaction, ...],
        Meta(max_length=16, description="removed before a query is stored; `all` keeps its length and a keyed hash"),
    ] = ("email", "phone", "url")
    store_results: Annotated[bool, Meta(description="whether to store the ids and scores of the results")] = True


Profile = Annotated[str, Meta(min_length=1, max_length=128)] | None
Rules = Annotated[
    Annotated[list[RuleInput], Meta(max_length=MAX_RULES)] | None,
    Meta(description="rules that infer relations; null: those for common relations; an empty list: none"),
]
QueryLog = Annotated[QueryLogSettings | None, Meta(description="null: no search is logged")]


class NamespaceInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings to give to a namespace; what is left out stays as it is.

    The first memory fixes its language, and its embedder until `reembed` changes it.
    """

    language: Annotated[
        Annotated[str, Meta(max_length=32)] | None,
        Meta(description=f"{_LANGUAGE}; null: the current one; for a new namespace `auto`"),
    ] = None
    embedder: Annotated[
        EmbedderName | None, Meta(description="null: the current one; for a new namespace the server's")
    ] = None
    profile: Profile | UnsetType = UNSET
    rules: Rules | UnsetType = UNSET
    query_log: QueryLog | UnsetType = UNSET

    def graph_rules(self) -> tuple[Rule, ...]:
        """The effective rules; the default ones if none are set.

        Raises:
            InvalidInput: an unusable rule, or too many; names the place.

        >>> settings = NamespaceSettings(rules=[InverseRule(relation="Parent of", inverse="child-of")])
        >>> [rule.then.relation for rule in settings.graph_rules()]
        ['child_of', 'parent_of']
        """
        if self.rules is None or self.rules is UNSET:
            return DEFAULT_RULES
        rules: list[Rule] = []
        for position, given in enumerate(self.rules):
            try:
                rules += given.as_rules()
            except RuleError as exc:
                # only a custom rule has the fields that the error can refer to
                loc = exc.loc if isinstance(given, CustomRule) else ()
                raise InvalidInput(str(exc), loc=("rules", position, *loc)) from exc
        if len(rules) > MAX_RULES:
            many = f"at most {MAX_RULES} rules, where an inverse counts as two; there are {len(rules)}"
            raise InvalidInput(many, loc=("rules",))
        return tuple(rules)


class NamespaceSettings(NamespaceInput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings that a namespace has."""

    language: Annotated[str, Meta(max_length=32, description=_LANGUAGE)] = "auto"
    embedder: Annotated[
        EmbedderName,
        Meta(
            description="the embedding model: `all-MiniLM-L6-v2`, `multilingual-e5-small`, which needs the extra "
            "`multilingual`, or PROVIDER/MODEL as in the server's settings"
        ),
    ] = DEFAULT_EMBEDDER
    profile: Profile = None
    rules: Rules = None
    query_log: QueryLog = None


class NamespaceInfo(Struct, frozen=True, kw_only=True):
    """A namespace with its settings and counts."""

    name: str
    settings: NamespaceSettings
    created_at: Zoned
    memories: int
    entities: int
    mentions: int
    relations: int


class NamespaceList(Struct, frozen=True, kw_only=True):
    """All namespaces."""

    namespaces: list[NamespaceInfo]


class ReembedRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The embedder for the new vectors of a namespace."""

    embedder: Annotated[EmbedderName | None, Meta(description="null: the current one")] = None


class NamespaceReceipt(Struct, frozen=True, kw_only=True):
    """What deleting a namespace removed."""

    namespace: str
    deleted: dict[str, int]
