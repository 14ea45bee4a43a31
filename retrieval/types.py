"""The words of the public contract as types: what goes over HTTP and what the pipeline passes on.

All are immutable msgspec structs. Those that callers send refuse unknown fields.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from classifier.intents import Intent
from graph.rules import DEFAULT_RULES, MAX_PREMISES, MAX_RULES, Atom, Rule, RuleError, check_count
from graph.rules import inverse as inverse_rules
from graph.rules import symmetric as symmetric_rule
from graph.rules import transitive as transitive_rule
from retrieval.errors import InvalidInput

MAX_TOP_K = 200
MAX_TEXT_CHARS = 60_000
"""Longest memory text. Longer documents belong into `chunk`s; term counts up to here fit 16 bits."""

MAX_BATCH = 1_000
"""Most memories of one JSON batch; the bulk endpoint has no such limit."""


class Leg(StrEnum):
    """One of the three retrievers."""

    VECTOR = "vector"
    BM25 = "bm25"
    GRAPH = "graph"


class Mode(StrEnum):
    """How the legs are combined: learned weights, the profile's fixed weights, or one leg alone."""

    ADAPTIVE = "adaptive"
    HYBRID = "hybrid"
    VECTOR = "vector"
    BM25 = "bm25"
    GRAPH = "graph"

    @property
    def legs(self) -> tuple[Leg, ...]:
        """The legs that run in this mode."""
        return tuple(Leg) if self in (Mode.ADAPTIVE, Mode.HYBRID) else (Leg(self.value),)


Kind = Literal["memory", "message", "chunk"]
Zoned = Annotated[datetime, Meta(tz=True, description="RFC 3339 with a zone")]
MemoryId = Annotated[str, Meta(min_length=1, max_length=256)]
Label = Annotated[str, Meta(min_length=1, max_length=256)]
Metadata = Annotated[dict[str, Any], Meta(description="free JSON; filters test containment")]
Weight = Annotated[float, Meta(ge=0)]


class EntityInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entity that the caller says a memory mentions."""

    name: Label
    type: Label = "thing"
    aliases: Annotated[list[Label], Meta(max_length=32)] = []


class RelationInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A typed edge between two entities, with the memory as its evidence."""

    source: Label
    type: Label
    target: Label


class MemoryInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A memory as a caller sends it; only `text` is required."""

    text: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_CHARS)]
    id: MemoryId | None = None
    kind: Kind = "memory"
    title: Annotated[str, Meta(max_length=1_000)] | None = None
    speaker: Annotated[str, Meta(max_length=256)] | None = None
    session_id: Annotated[str, Meta(max_length=256)] | None = None
    position: Annotated[int, Meta(ge=0, le=2_147_483_647)] | None = None
    document_id: Annotated[str, Meta(max_length=256)] | None = None
    created_at: Zoned | None = None
    expires_at: Zoned | None = None
    tags: Annotated[list[Label], Meta(max_length=64)] = []
    metadata: Metadata = {}
    entities: Annotated[list[EntityInput], Meta(max_length=256)] = []
    relations: Annotated[list[RelationInput], Meta(max_length=256)] = []
    supersedes: MemoryId | None = None


class MemoryPatch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields to change; one left out stays, `null` clears one that may be empty."""

    text: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_CHARS)] | UnsetType = UNSET
    kind: Kind | UnsetType = UNSET
    title: Annotated[str, Meta(max_length=1000)] | UnsetType | None = UNSET
    speaker: Annotated[str, Meta(max_length=256)] | UnsetType | None = UNSET
    session_id: Annotated[str, Meta(max_length=256)] | UnsetType | None = UNSET
    position: Annotated[int, Meta(ge=0, le=2147483647)] | UnsetType | None = UNSET
    document_id: Annotated[str, Meta(max_length=256)] | UnsetType | None = UNSET
    created_at: Zoned | UnsetType = UNSET
    expires_at: Zoned | UnsetType | None = UNSET
    tags: Annotated[list[Label], Meta(max_length=64)] | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET
    entities: Annotated[list[EntityInput], Meta(max_length=256)] | UnsetType = UNSET
    relations: Annotated[list[RelationInput], Meta(max_length=256)] | UnsetType = UNSET
    supersedes: MemoryId | UnsetType | None = UNSET


class Memory(Struct, frozen=True, kw_only=True):
    """A memory as it is stored and returned."""

    id: str
    text: str
    kind: Kind
    title: str | None
    speaker: str | None
    session_id: str | None
    position: int | None
    document_id: str | None
    created_at: datetime
    expires_at: datetime | None
    tags: list[str]
    metadata: dict[str, Any]
    entities: list[EntityInput]
    relations: list[RelationInput]
    supersedes: str | None
    superseded_by: list[str]


AddStatus = Literal["created", "updated", "unchanged", "rejected"]


class AddResult(Struct, frozen=True, kw_only=True):
    """What became of one memory of a batch."""

    id: str | None
    status: AddStatus
    error: str | None = None


class Filters(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conditions that hold in every leg; all given ones must be met, an empty list is no condition."""

    tags_all: Annotated[list[Label], Meta(max_length=64)] = []
    tags_any: Annotated[list[Label], Meta(max_length=64)] = []
    kind: Annotated[list[Kind], Meta(max_length=3)] = []
    session_id: Annotated[list[str], Meta(max_length=1_000)] = []
    document_id: Annotated[list[str], Meta(max_length=1_000)] = []
    speaker: Annotated[list[str], Meta(max_length=1_000)] = []
    created_after: Zoned | None = None
    created_before: Zoned | None = None
    metadata: Metadata = {}

    @property
    def is_empty(self) -> bool:
        """Whether every memory meets these filters."""
        return self == Filters()


class LegWeights(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much each leg counts in the fusion; finite, not negative, not all 0. One left out is 0."""

    vector: Weight = 0.0
    bm25: Weight = 0.0
    graph: Weight = 0.0


def _about(description: str) -> Meta:
    return Meta(description=description)


class SearchOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a search and a context pack have in common."""

    top_k: Annotated[int, Meta(ge=1, le=MAX_TOP_K)] = 10
    mode: Mode = Mode.ADAPTIVE
    weights: Annotated[LegWeights | None, _about("overrides adaptivity; a leg left out counts 0")] = None
    intent: Annotated[Intent | None, _about("stated by the caller; null: as classified")] = None
    profile: Annotated[str, Meta(max_length=128, description="null: the namespace's, or `default`")] | None = None
    rrf_k: Annotated[int, Meta(ge=1, le=1_000, description="null: as the profile says")] | None = None
    filters: Filters = Filters()
    as_of: Annotated[Zoned | None, _about("answer as the namespace stood then; null: now")] = None
    query_timestamp: Annotated[
        Zoned | None, _about('when the query was asked, from which "last week" counts; null: `as_of`, or now')
    ] = None
    include_superseded: Annotated[bool, _about("also memories that a newer one supersedes")] = False
    min_similarity: (
        Annotated[float, Meta(ge=-1, le=1, description="least cosine similarity in the vector leg")] | None
    ) = None
    ef_search: Annotated[int, Meta(ge=1, le=200, description="breadth of the search for the nearest vectors")] = 64
    max_hops: (
        Annotated[int, Meta(ge=0, le=4, description="hops beyond the query's entities; null: as the profile says")]
        | None
    ) = None
    rescore: Annotated[bool | None, _about("the learned last step on or off; null: as the profile says")] = None
    source_cap: (
        Annotated[int, Meta(ge=1, le=200, description="most memories of one session or document; null: the profile's")]
        | None
    ) = None
    diversity: (
        Annotated[float, Meta(ge=0, le=1, description="0: relevance alone; up to 1: unlike those before it")] | None
    ) = None
    explain: Annotated[bool, _about("with paths, duplicates and the reasons for the weights")] = False


class SearchRequest(SearchOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One search."""

    query: Annotated[str, Meta(min_length=1, max_length=8_192)]


class LegEvidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where one leg had a memory. `path` and `why`, the same as a sentence, are the graph leg's, with `explain`."""

    rank: int
    score: float
    path: list[str] | None = None
    why: str | None = None


class FusedEvidence(Struct, frozen=True, kw_only=True):
    """Where the weighted reciprocal rank fusion had a memory."""

    rank: int
    score: float


class SearchResult(Struct, frozen=True, kw_only=True):
    """One memory of an answer, with what every leg said of it."""

    id: str
    text: str
    snippet: str
    title: str | None
    kind: Kind
    speaker: str | None
    session_id: str | None
    document_id: str | None
    created_at: datetime
    tags: list[str]
    metadata: dict[str, Any]
    score: float
    fused: FusedEvidence
    legs: dict[str, LegEvidence]
    duplicates: list[str] | UnsetType = UNSET


class IntentReport(Struct, frozen=True, kw_only=True):
    """The most probable intent and the probabilities of all four."""

    label: str
    probabilities: dict[str, float]


class Degradation(Struct, frozen=True, kw_only=True):
    """A leg that did not answer, and why."""

    leg: str
    reason: str


class Explanation(Struct, frozen=True, kw_only=True):
    """Why the answer is what it is: in words, and the numbers behind it. Without a rescorer `rescoring` is null."""

    weights: str
    rescoring: str | None
    rrf_k: float
    fan_out: int
    legs: dict[str, dict[str, Any]]


class SearchResponse(Struct, frozen=True, kw_only=True):
    """A ranked answer."""

    results: list[SearchResult]
    intent: IntentReport | None
    weights: dict[str, float]
    profile: str
    degraded: list[Degradation]
    timings_ms: dict[str, float]
    search_id: Annotated[str, _about("names this search, also in feedback on it")] = ""
    explanation: Explanation | UnsetType = UNSET


class ChatMessage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One turn of the conversation that wants context."""

    role: Annotated[str, Meta(min_length=1, max_length=64)]
    content: Annotated[str, Meta(max_length=MAX_TEXT_CHARS)]


PackFormat = Literal["markdown", "xml", "json"]
PackOrder = Literal["relevance", "time"]


class ContextRequest(SearchOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search whose answer is rendered into a context pack. `query` or `messages` is required."""

    query: Annotated[str, Meta(min_length=1, max_length=8_192)] | None = None
    messages: Annotated[
        list[ChatMessage], Meta(max_length=1_000, description="without a query, the user's last one is asked")
    ] = []
    max_tokens: Annotated[int, Meta(ge=64, le=200_000, description="of the whole rendered text")] = 2048
    format: PackFormat = "markdown"
    order: Annotated[PackOrder, _about("of the entries; which are chosen goes by relevance")] = "relevance"
    top_k: Annotated[int, Meta(ge=1, le=MAX_TOP_K)] = 30


class PackItem(Struct, frozen=True, kw_only=True):
    """A memory in the pack, the tokens it took and how the text cites it."""

    id: str
    tokens: int
    citation: str


class DroppedItem(Struct, frozen=True, kw_only=True):
    """A memory left out of the pack, and why."""

    id: str
    reason: str


class ContextResponse(Struct, frozen=True, kw_only=True):
    """A context pack; `tokens_used` counts the whole rendered text and never exceeds `max_tokens`."""

    context: str
    tokens_used: int
    max_tokens: int
    items: list[PackItem]
    dropped: list[DroppedItem]
    results: list[SearchResult] | UnsetType = UNSET
    intent: IntentReport | None
    weights: dict[str, float]
    profile: str
    degraded: list[Degradation]
    timings_ms: dict[str, float]
    search_id: Annotated[str, _about("names this search, also in feedback on it")] = ""
    explanation: Explanation | UnsetType = UNSET


class ClassifyRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A query whose intent is asked for."""

    query: Annotated[str, Meta(min_length=1, max_length=8_192)]
    profile: Annotated[str, Meta(max_length=128)] | None = None


class ClassifyResponse(Struct, frozen=True, kw_only=True):
    """The intent of a query and the weights that it alone asks for; in a search what the legs find moves them."""

    intent: IntentReport
    weights: dict[str, float]
    profile: str
    timings_ms: dict[str, float]


class SymmetricRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="symmetric"):
    """If x is so related to y, then y is to x."""

    relation: Label

    def as_rules(self) -> tuple[Rule, ...]:
        """As the graph applies it."""
        return (symmetric_rule(self.relation),)


class InverseRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="inverse"):
    """Two relations that are each other backwards."""

    relation: Label
    inverse: Label

    def as_rules(self) -> tuple[Rule, ...]:
        """As the graph applies it: one rule each way."""
        return inverse_rules(self.relation, self.inverse)


class TransitiveRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="transitive"):
    """If x is so related to y, and y to z, then x is to z."""

    relation: Label

    def as_rules(self) -> tuple[Rule, ...]:
        """As the graph applies it."""
        return (transitive_rule(self.relation),)


Triple = Annotated[tuple[Label, Label, Label], _about("a variable, a relation and a variable")]


class CustomRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="custom"):
    """Whenever all of `when` hold for some entities, `then` does; entities are variables such as `x`."""

    name: Label
    when: Annotated[list[Triple], Meta(min_length=1, max_length=MAX_PREMISES)]
    then: Triple

    def as_rules(self) -> tuple[Rule, ...]:
        """As the graph applies it."""
        return (Rule(self.name, tuple(Atom(*triple) for triple in self.when), Atom(*self.then)),)


RuleInput = SymmetricRule | InverseRule | TransitiveRule | CustomRule


Redaction = Literal["email", "phone", "number", "url", "all"]


class QueryLogSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of the searches of a namespace, for replay and labelling, and for how long."""

    max_entries: Annotated[int, Meta(ge=1, le=1_000_000, description="beyond these the oldest fall out")] = 10_000
    max_age_days: Annotated[int, Meta(ge=1, le=36_500, description="null: however old")] | None = 30
    redact: Annotated[
        tuple[Redaction, ...],
        Meta(max_length=16, description="taken out before a query is written; `all`: its length and a keyed hash stay"),
    ] = ("email", "phone", "url")
    store_results: Annotated[bool, _about("also the ids and scores that were answered")] = True


class NamespaceSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a namespace's owner may set. The language of analysis is fixed by the first memory."""

    language: Annotated[str, Meta(max_length=32)] = "auto"
    profile: Annotated[str, Meta(max_length=128)] | None = None
    rules: Annotated[
        Annotated[list[RuleInput], Meta(max_length=MAX_RULES)] | None,
        _about("what follows from relations; null: rules for common relations; an empty list: nothing"),
    ] = None
    query_log: Annotated[QueryLogSettings | None, _about("null: no search is logged")] = None

    def graph_rules(self) -> tuple[Rule, ...]:
        """The rules in force, the default ones if none are set.

        Raises:
            InvalidInput: a rule that cannot be used, or too many; names the place.

        >>> settings = NamespaceSettings(rules=[InverseRule(relation="Parent of", inverse="child-of")])
        >>> [rule.then.relation for rule in settings.graph_rules()]
        ['child_of', 'parent_of']
        """
        if self.rules is None:
            return DEFAULT_RULES
        rules: list[Rule] = []
        for at, given in enumerate(self.rules):
            try:
                rules += given.as_rules()
            except RuleError as exc:
                # only a custom rule has the fields that the fault may lie in
                loc = exc.loc if isinstance(given, CustomRule) else ()
                raise InvalidInput(str(exc), loc=("rules", at, *loc)) from exc
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
    """What deleting a namespace took away."""

    namespace: str
    deleted: dict[str, int]


class MemoryPage(Struct, frozen=True, kw_only=True):
    """A page of memories, oldest insertion first; `next_cursor` is null on the last."""

    memories: list[Memory]
    next_cursor: str | None
