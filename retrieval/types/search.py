"""Requests and responses of search, context packs and classification."""

from __future__ import annotations

from enum import StrEnum
from html import escape
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

from classifier.intents import Intent
from retrieval.types.memory import MAX_TEXT_CHARS, Kind, Label, MemoryId, Metadata, Zoned
from retrieval.types.tables import Tabular

MAX_TOP_K = 200
MIN_PACK_RELEVANCE = 0.005
MAX_HOPS = 4


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


Weight = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Hops = Annotated[int, Meta(ge=0, le=MAX_HOPS)]
SourceCap = Annotated[int, Meta(ge=1, le=200)]
Query = Annotated[str, Meta(min_length=1, max_length=8_192, extra_json_schema={"pattern": r"\S"})]
ProfileName = Annotated[
    str,
    Meta(
        max_length=128, description="the fusion profile: `NAME` or `NAME@VERSION`; null: the namespace's, or `default`"
    ),
]


class Filters(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters that apply in every leg; all must match, an empty list matches everything."""

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
        """Whether these filters match every memory."""
        return self == NO_FILTERS


NO_FILTERS = Filters()


class Exclude(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Memories to leave out: those that any of these fields names."""

    ids: Annotated[list[MemoryId], Meta(max_length=1_000)] = []
    session_id: Annotated[list[str], Meta(max_length=1_000)] = []
    created_after: Annotated[Zoned | None, Meta(description="leaves out what was created after this time")] = None


class LegWeights(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Weight of each leg in the fusion; finite, not negative, not all 0. A missing leg is 0."""

    vector: Weight = 0.0
    bm25: Weight = 0.0
    graph: Weight = 0.0


class SearchOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options shared by searches and context packs."""

    top_k: Annotated[int, Meta(ge=1, le=MAX_TOP_K)] = 10
    mode: Mode = Mode.ADAPTIVE
    weights: Annotated[LegWeights | None, Meta(description="overrides adaptivity; a leg left out counts 0")] = None
    intent: Annotated[Intent | None, Meta(description="stated by the caller; null: as classified")] = None
    profile: ProfileName | None = None
    rrf_k: (
        Annotated[int, Meta(ge=1, le=1_000, description="smoothing of the fusion; null: as the profile says")] | None
    ) = None
    filters: Filters = Filters()
    exclude: Exclude = Exclude()
    as_of: Annotated[Zoned | None, Meta(description="search the namespace as of this time; null: now")] = None
    query_timestamp: Annotated[
        Zoned | None, Meta(description='when the query was asked: "last week" is relative to it; null: `as_of`, or now')
    ] = None
    include_superseded: Annotated[bool, Meta(description="include memories that a newer one supersedes")] = False
    min_similarity: (
        Annotated[float, Meta(ge=-1, le=1, description="minimum cosine similarity in the vector leg")] | None
    ) = None
    ef_search: Annotated[
        int, Meta(ge=1, le=200, description="breadth of the vector search: the higher, the more vectors are compared")
    ] = 64
    max_hops: Annotated[
        Hops | None,
        Meta(
            description="hops beyond the query's entities, after the first only while there are fewer than 40 "
            "memories; null: as the profile says"
        ),
    ] = None
    rescore: Annotated[bool | None, Meta(description="learned rescoring on or off; null: as the profile says")] = None
    min_relevance: Annotated[
        Share | None,
        Meta(
            description="minimum relevance of a result, unless it contains an identifier from the query, such as "
            "INV-20481, or is from the time that the query asks for; above 0 it needs the rescorer"
        ),
    ] = None
    source_cap: Annotated[
        SourceCap | None,
        Meta(
            description="maximum number of memories of one session or document, in a search as long as others can "
            "take their place; null: as the profile says"
        ),
    ] = None
    diversity: Annotated[
        Share | None, Meta(description="0: relevance alone; up to 1: less repetition; null: as the profile says")
    ] = None
    explain: Annotated[bool, Meta(description="include terms, paths, duplicates and the reasons for the order")] = False


class SearchRequest(SearchOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One search."""

    query: Query


class LegEvidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A memory's rank in one leg. `terms`, `path`, and `why` as a sentence, come with `explain`.

    A memory without any of the query's terms matches by those of the turns or chunks around it, or by its time.
    """

    rank: int
    score: float
    duplicate: str | None = None
    terms: list[str] | None = None
    path: list[str] | None = None
    why: str | None = None


class FusedEvidence(Struct, frozen=True, kw_only=True):
    """A memory's rank in the weighted reciprocal rank fusion."""

    rank: int
    score: float


class SearchResult(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """One memory of an answer, with its evidence from each leg."""

    id: str
    text: str
    snippet: str
    title: str | None
    kind: Kind
    speaker: str | None
    session_id: str | None
    document_id: str | None
    created_at: Zoned
    tags: list[str]
    metadata: dict[str, Any]
    score: float
    relevance: Annotated[
        float | None, Meta(description="calibrated probability that it answers the query; null if no rescorer ran")
    ] = None
    fused: FusedEvidence
    legs: dict[str, LegEvidence]
    duplicates: list[str] | UnsetType = UNSET


class IntentReport(Struct, frozen=True, kw_only=True):
    """The most probable intent and the probabilities of all four."""

    label: str
    probabilities: dict[str, float]


class Degradation(Struct, frozen=True, kw_only=True):
    """A leg, or the rescorer, that did not answer, and why."""

    leg: str
    reason: str


class Explanation(Struct, frozen=True, kw_only=True):
    """Why the answer is what it is, in words and numbers.

    `query` is what was searched for: of a conversation or a long text the question in it, with
    what seems misspelt replaced. `rescoring` is null if no rescorer ran, `time` if the query
    neither names a time from which there are memories nor asks about the present or an earlier
    state. In the vector leg, `also_read_as` is a query that names a speaker in the first person.
    In the graph leg, `anchors_from` names the legs whose hits it walked on from: under load it
    does not wait for a late leg, even if that leg still answers in time.
    """

    query: str
    weights: str
    rescoring: str | None
    time: str | None
    rrf_k: float
    fan_out: int
    legs: dict[str, dict[str, Any]]


class SearchResponse(Tabular, Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """A ranked answer."""

    results: list[SearchResult]
    intent: IntentReport
    weights: dict[str, float]
    profile: str
    degraded: list[Degradation]
    timings_ms: dict[str, float]
    search_id: Annotated[str, Meta(description="identifies this search, also in feedback")] = ""
    explanation: Explanation | UnsetType = UNSET

    def table_rows(self) -> list[dict[str, Any]]:
        """A row for each result."""
        columns = ("id", "score", "created_at", "speaker", "title", "kind", "text")
        return [
            {"rank": rank, **{column: getattr(result, column) for column in columns}}
            for rank, result in enumerate(self.results, start=1)
        ]


class ContentPart(Struct, frozen=True, kw_only=True):
    """A part of a message, as in OpenAI's and Anthropic's APIs; what is not text, such as an image, is ignored."""

    text: Annotated[str, Meta(max_length=MAX_TEXT_CHARS)] | None = None
    content: str | ContentPart | list[ContentPart] | None = None


class ChatMessage(Struct, frozen=True, kw_only=True):
    """One turn of the conversation that needs context; other fields are ignored."""

    role: Annotated[str, Meta(min_length=1, max_length=64)]
    content: Annotated[str, Meta(max_length=MAX_TEXT_CHARS)] | list[ContentPart] | UnsetType | None = UNSET
    tool_calls: list[Any] | None = None

    def __post_init__(self) -> None:
        if self.content is UNSET and not self.tool_calls:
            raise ValueError("Object missing required field `content`")


PackFormat = Literal["markdown", "xml", "json"]
PackOrder = Literal["relevance", "time"]


class ContextRequest(SearchOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search whose answer is rendered into a context pack. `query` or `messages` is required."""

    query: Query | None = None
    messages: Annotated[
        list[ChatMessage],
        Meta(
            max_length=1_000,
            description="the conversation so far: nothing in it is returned; without a query, the user's last message "
            "is the query, together with what it refers to",
        ),
    ] = []
    max_tokens: Annotated[int, Meta(ge=1, le=200_000, description="of the whole rendered text")] = 2048
    format: PackFormat = "markdown"
    order: Annotated[PackOrder, Meta(description="of the entries, which are selected by relevance")] = "relevance"
    top_k: Annotated[int, Meta(ge=1, le=MAX_TOP_K, description="the maximum number of memories to choose from")] = (
        MAX_TOP_K
    )
    min_relevance: Annotated[
        Share | None, Meta(description=f"minimum relevance of an entry; null: {MIN_PACK_RELEVANCE}, 0: no minimum")
    ] = None


class PackSize(NamedTuple):
    """The most tokens of a context pack, and the most memories to choose from."""

    tokens: int
    memories: int


class PackItem(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """A memory in the pack, its tokens and its citation in the text."""

    id: str
    tokens: int
    citation: str
    excerpt: Annotated[bool | UnsetType, Meta(description="true if only a part of its text is shown")] = UNSET
    needed_by: Annotated[
        str | UnsetType, Meta(description="id of the found memory whose question or answer this turn is")
    ] = UNSET


class DroppedItem(Struct, frozen=True, kw_only=True):
    """A memory left out of the pack, and why."""

    id: str
    reason: str


class ContextResponse(Tabular, Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """A context pack; `tokens_used` counts the whole rendered text and never exceeds `max_tokens`."""

    context: str
    tokens_used: int
    max_tokens: int
    items: list[PackItem]
    dropped: list[DroppedItem]
    related: Annotated[list[str], Meta(description="entities that the items mention most")] = []
    results: list[SearchResult] | UnsetType = UNSET
    intent: IntentReport | None
    weights: dict[str, float]
    profile: str
    degraded: list[Degradation]
    timings_ms: dict[str, float]
    search_id: Annotated[str, Meta(description="identifies this search, also in feedback")] = ""
    explanation: Explanation | UnsetType = UNSET
    reason: Annotated[
        str | UnsetType, Meta(description="why the pack is empty: `unknown_namespace`, `nothing_relevant`")
    ] = UNSET

    def table_rows(self) -> list[dict[str, Any]]:
        """A row for each memory in the pack."""
        return [{"citation": item.citation, "id": item.id, "tokens": item.tokens} for item in self.items]

    def _repr_html_(self) -> str:
        """The text and the table of its memories."""
        return f"<pre>{escape(self.context)}</pre>{super()._repr_html_()}"


class ClassifyRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A query to classify."""

    query: Query
    namespace: Annotated[
        str | None, Meta(description="classify as a search of it would, by its profile and its embedder; null: none")
    ] = None
    profile: ProfileName | None = None


class ClassifyResponse(Struct, frozen=True, kw_only=True):
    """The intent of a query and its leg weights; a search also adjusts them to the legs' results."""

    intent: IntentReport
    weights: dict[str, float]
    profile: str
    timings_ms: dict[str, float]
