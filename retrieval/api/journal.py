"""The journal: feedback on rankings, evaluations by it and, where a namespace enables it, the query log."""

from __future__ import annotations

from typing import Annotated

from litestar import Controller, delete, get, post
from litestar.params import JSONBody, QueryParameter

from retrieval.api.parameters import Cursor, Limit, NamespaceName
from retrieval.api.problems import problems
from retrieval.api.state import Api
from retrieval.evaluation.judgements import evaluate_judgements
from retrieval.types.evaluation import EvaluationRequest, JudgedEvaluation
from retrieval.types.journal import FeedbackPage, FeedbackReceipt, FeedbackRequest, QueryPage
from retrieval.types.memory import Deleted


class JournalController(Controller):
    """Feedback, the query log, and the quality of rankings by callers' judgements."""

    path = "/v1/namespaces/{ns:str}"
    tags = ("journal",)

    @post("/feedback", status_code=201, responses=problems(404, 409))
    async def add_feedback(self, api: Api, ns: NamespaceName, data: JSONBody[FeedbackRequest]) -> FeedbackReceipt:
        """Report what was relevant.

        Stored with the ranking that was shown, for tuning. `clicked` memories must be among `shown`; `relevant`,
        `irrelevant` and `ratings` may also name memories that were missed, but they must exist. With the `search_id`
        of a logged search, `query`, `shown` and other fields left out are taken from the query log. The same `id` with
        the same content is stored once; with other content it is a 409. A namespace keeps the last 100,000. Ids of
        deleted memories stay in feedback; deleting the namespace deletes its feedback.
        """
        return await api.engine.journal.add_feedback(ns, data)

    @get("/feedback", responses=problems(404))
    async def list_feedback(
        self, api: Api, ns: NamespaceName, cursor: Cursor = None, limit: Limit = 100
    ) -> FeedbackPage:
        """List feedback.

        Oldest first. Follow `next_cursor` until it is null.
        """
        return await api.engine.journal.list_feedback(ns, cursor=cursor or None, limit=limit)

    @delete("/feedback", status_code=200, responses=problems(404))
    async def delete_feedback(self, api: Api, ns: NamespaceName) -> Deleted:
        """Delete all feedback of a namespace."""
        return Deleted(deleted=await api.engine.journal.delete_feedback(ns))

    @get("/queries", responses=problems(404))
    async def list_queries(self, api: Api, ns: NamespaceName, cursor: Cursor = None, limit: Limit = 100) -> QueryPage:
        """List logged searches.

        Oldest first. Follow `next_cursor` until it is null. Searches are logged only while the namespace's setting
        `query_log` is set; it limits their number and age and says what is redacted. An entry appears shortly after
        its answer.
        """
        return await api.engine.journal.list_queries(ns, cursor=cursor or None, limit=limit)

    @delete("/queries", status_code=200, responses=problems(404))
    async def delete_queries(
        self,
        api: Api,
        ns: NamespaceName,
        id: Annotated[list[str] | None, QueryParameter(description="the `search_id` of an answer")] = None,
    ) -> Deleted:
        """Delete logged searches.

        All of them, or those with the given ids.
        """
        return Deleted(deleted=await api.engine.journal.delete_queries(ns, ids=id))

    @post("/evaluations", status_code=200, responses=problems(404))
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
