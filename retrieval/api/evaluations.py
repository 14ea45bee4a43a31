"""Evaluations of a namespace by the judgements of its callers."""

from __future__ import annotations

from litestar import Controller, post
from litestar.params import JSONBody

from retrieval.api.parameters import NamespaceName
from retrieval.api.problems import problems
from retrieval.api.state import Api
from retrieval.evaluation.judgements import evaluate_judgements
from retrieval.types.evaluation import EvaluationRequest, JudgedEvaluation


class EvaluationsController(Controller):
    """How well the rankings are, by what callers judged."""

    path = "/v1/namespaces/{ns:str}/evaluations"
    tags = ("journal",)

    @post(status_code=200, responses=problems(404))
    async def evaluate_namespace(
        self, api: Api, ns: NamespaceName, data: JSONBody[EvaluationRequest]
    ) -> JudgedEvaluation:
        """Compare ways to rank on the judged queries.

        Asks each query that feedback has a relevant memory for, at most the 200 judged last and at least ten: of each
        leg alone, of equal weights, of each stage of the profile, and of another profile. Nothing of it is logged. A
        query that one of them cannot answer counts for none and is named. All stages are tested against each other
        system by a paired randomisation test, corrected for the number of tests.
        """
        return await evaluate_judgements(api.engine, ns, data)
