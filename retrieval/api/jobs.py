"""Long-running jobs: their progress and outcome; new vectors for a namespace."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Controller, get, post
from litestar.params import JSONBody, QueryParameter

from retrieval.api.parameters import NamespaceName, TypedRequest
from retrieval.api.problems import problems
from retrieval.api.state import Api
from retrieval.api.tokens import READS, check_access
from retrieval.types.job import Job
from retrieval.types.namespace import ReembedRequest


class JobList(msgspec.Struct, frozen=True, kw_only=True):
    """Running jobs, then the others, newest first."""

    jobs: list[Job]


class JobStarted(msgspec.Struct, frozen=True, kw_only=True):
    """The job that was started."""

    id: str


class JobsController(Controller):
    """Work that takes longer than a request."""

    path = "/v1"
    tags = ("jobs",)

    @get("/jobs", opt={READS: True})
    async def list_jobs(
        self,
        api: Api,
        request: TypedRequest,
        namespace: Annotated[str | None, QueryParameter(description="only jobs of this namespace")] = None,
    ) -> JobList:
        """List jobs.

        Imports and other work that takes more than two seconds, in any process: running jobs, then the others, newest
        first, 100 at most. A job whose process died becomes `interrupted` twenty seconds later. With a token,
        `namespace` is required.
        """
        check_access(request.scope, namespace, writes=False)
        return JobList(jobs=await api.engine.jobs.recent(namespace))

    @post("/namespaces/{ns:str}/reembed", status_code=202, responses=problems(404, 409))
    async def reembed_namespace(self, api: Api, ns: NamespaceName, data: JSONBody[ReembedRequest]) -> JobStarted:
        """Compute new vectors for all memories of a namespace.

        With its current embedder, after the model changed, or with another one, which it then keeps. The response comes
        at once, with the id of a job. Until the job is done, searches and writes use the old vectors; then all are
        replaced at once. If the server stops first, nothing has changed, and the same request resumes the work. While
        one job is running, a second request is a 409.
        """
        return JobStarted(id=await api.engine.reembedding.begin(ns, data.embedder))
