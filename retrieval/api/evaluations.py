"""Evaluations of a namespace against its callers' judgements."""

from __future__ import annotations

from litestar import Controller, post
from litestar.params import JSONBody

from retrieval.api.parameters import NamespaceName
from retrieval.api.problems import problems
from retrieval.api.state import Api
from retrieval.evaluation.judgements import evaluate_judgements
from retrieval.types.evaluation import EvaluationRequest, JudgedEvaluation


class EvaluationsController(Controller):
    """The quality of rankings, by callers' judgements."""

    path = "/v1/namespaces/{ns:str}/evaluations"
    tags = ("journal",)

    @post(status_code=200, responses=problems(404))
    async def evaluate_namespace(
        self, api: Api, ns: NamespaceName, data: JSONBody[EvaluationRequest]
    ) -> JudgedEvaluation:
        """Compare ranking systems on the judged queries.

        Runs every query for which feedback has a relevant memory that it can still find, at most the 200 judged last
        and at least ten, with each leg alone, with equal weights, with each stage of the profile, and with another
        profile if named. Nothing is logged. A query that one system cannot answer counts for none and is listed in
        `failed`. The full profile is compared with every other system by a paired randomisation test, corrected for the
        number of tests.
        """
        return await evaluate_judgements(api.engine, ns, data)
