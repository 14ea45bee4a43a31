"""Long work: what is under way and how it ended; new vectors for a namespace."""

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
    """Jobs: those under way, then the others, newest first."""

    jobs: list[Job]


class JobStarted(msgspec.Struct, frozen=True, kw_only=True):
    """The job that was begun."""

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
        namespace: Annotated[str | None, QueryParameter(description="only those of this namespace")] = None,
    ) -> JobList:
        """List jobs.

        Imports and other work that took more than two seconds: what is under way, whichever process does it, and the
        last 100. One whose process died is `interrupted` twenty seconds later. Who has a token names a namespace that
        it opens.
        """
        check_access(request.scope, namespace, writes=namespace is None)  # with a token `namespace` has to be named
        return JobList(jobs=await api.engine.jobs.recent(namespace))

    @post("/namespaces/{ns:str}/reembed", status_code=202, responses=problems(404, 409))
    async def reembed_namespace(self, api: Api, ns: NamespaceName, data: JSONBody[ReembedRequest]) -> JobStarted:
        """Give all memories of a namespace new vectors.

        By the embedder that it has, after its model changed, or by another one, which it has from then on. The answer
        comes at once, with the id of a job. Until it is done, searches and writes go on with the old vectors; then all
        are replaced at once. If the server stops before, nothing has changed; the same request goes on where it
        stopped. While one is under way, another one is a 409.
        """
        return JobStarted(id=await api.engine.reembedding.begin(ns, data.embedder))
