"""An evaluation of a namespace against its callers' judgements."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from retrieval.types.memory import Label

Verdict = Literal["better", "worse", "not different"]


class EvaluationRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is compared."""

    profile: Annotated[Label | None, Meta(description="null: the namespace's")] = None
    other: Annotated[Label | None, Meta(description="another profile or version to compare, as `NAME@VERSION`")] = None


class Estimate(Struct, frozen=True, kw_only=True):
    """A mean over queries and the bounds of its 95 % confidence interval."""

    mean: float
    low: float
    high: float


class SystemScores(Struct, frozen=True, kw_only=True):
    """The scores of one system."""

    system: str
    measures: dict[str, Estimate]


class SystemComparison(Struct, frozen=True, kw_only=True):
    """The judged system against another one on the same queries."""

    baseline: str
    measure: str
    difference: Estimate
    p_value: float
    wins: int
    ties: int
    losses: int
    verdict: Verdict


class QueryScores(Struct, frozen=True, kw_only=True):
    """How each system does on one query."""

    query: str
    relevant: list[str]
    ndcg: dict[str, float]


class FailedQuery(Struct, frozen=True, kw_only=True):
    """A query that a system did not answer; it counts for none."""

    query: str
    error: str


class JudgedEvaluation(Struct, frozen=True, kw_only=True):
    """Systems compared on the queries that callers judged."""

    judged: str
    systems: list[SystemScores]
    comparisons: list[SystemComparison]
    queries: list[QueryScores]
    failed: list[FailedQuery]
    left_out: int
