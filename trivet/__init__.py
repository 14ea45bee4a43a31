"""Trivet from Python: clients of a server.

with trivet.Client(namespace="ana") as memory:
    memory.add("My sister Ines moved to Porto in May.")
    print(memory.context("Where does my sister live?").context)
"""

from retrieval.types.document import Document, DocumentInfo, DocumentReceipt
from retrieval.types.memory import AddResult
from retrieval.types.memory import Memory as StoredMemory
from retrieval.types.memory import MemoryInput as Memory
from retrieval.types.search import ContextResponse, SearchResponse, SearchResult
from trivet._async_client import AsyncClient
from trivet._client import Client
from trivet.analysis import terms
from trivet.errors import (
    BodyTooLarge,
    Conflict,
    InvalidInput,
    NotFound,
    RateLimited,
    ServerError,
    TrivetError,
    Unauthorized,
    Unavailable,
    Unreachable,
)
from trivet.fusion import weighted_rrf
from trivet.in_process import aopen
from trivet.in_process import open_ as open

__all__ = [
    "AddResult",
    "AsyncClient",
    "BodyTooLarge",
    "Client",
    "Conflict",
    "ContextResponse",
    "Document",
    "DocumentInfo",
    "DocumentReceipt",
    "InvalidInput",
    "Memory",
    "NotFound",
    "RateLimited",
    "SearchResponse",
    "SearchResult",
    "ServerError",
    "StoredMemory",
    "TrivetError",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
    "aopen",
    "open",
    "terms",
    "weighted_rrf",
]
