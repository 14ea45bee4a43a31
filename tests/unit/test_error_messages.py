"""Error messages for invalid JSON."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from retrieval.api.parameters import AddRequest
from retrieval.error_messages import invalid_input
from retrieval.errors import InvalidInput
from retrieval.lifecycle.export import ExportHeader
from retrieval.types.document import DocumentInput
from retrieval.types.journal import FeedbackRequest
from retrieval.types.memory import MemoryInput, MemoryPatch
from retrieval.types.namespace import NamespaceSettings
from retrieval.types.search import ContextRequest, SearchRequest
from retrieval.validation import parse_batch

CASES: list[tuple[type, bytes, str]] = [
    (SearchRequest, b"{}", "query: is required: text of 1 to 8,192 characters"),
    (SearchRequest, b'{"query": null}', "query: must be text of 1 to 8,192 characters, not null"),
    (SearchRequest, b'{"query": "a", "mode": "magic"}',
     "mode: must be one of adaptive, bm25, graph, hybrid, vector, not 'magic'"),
    (SearchRequest, b'{"query": "a", "filters": {"kind": ["note"]}}',
     "filters.kind.0: must be one of chunk, memory, message, not 'note'"),
    (SearchRequest, b'{"query": "a", "top_k": 0}', "top_k: must be a whole number from 1 to 200"),
    (SearchRequest, b'{"query": "a", "top_k": 1.5}',
     "top_k: must be a whole number from 1 to 200, not a decimal number"),
    (SearchRequest, b'{"query": "a", "weights": {"vector": -1}}', "weights.vector: must be a number of at least 0"),
    (SearchRequest, b'{"query": "a", "weights": {"vector": 1e999}}', "weights.vector: must be a finite number"),
    (SearchRequest, b'{"query": "a", "explain": 1}', "explain: must be true or false, not a number"),
    (SearchRequest, b'{"query": "a", "as_of": "2023-05-08"}',
     "as_of: must be a time with a zone (such as 2023-05-08T13:56:00Z) or null"),
    (SearchRequest, b'{"query": "a", "topk": 1}', "topk: there is no such field; did you mean `top_k`?"),
    (SearchRequest, b'{"query": "a", "limit": 1}', "limit: there is no such field; did you mean `top_k`?"),
    (SearchRequest, b'{"query": "a", "session_id": ["s"]}',
     'session_id: there is no such field here; did you mean {"filters": {"session_id": \u2026}}?'),
    (SearchRequest, b'{"query": "a", "filters": {"speaker": "Ana"}}',
     'filters.speaker: must be a list of at most 1,000, not text; did you mean {"speaker": [\u2026]}?'),
    (SearchRequest, b'{"query": "a", "weights": {"lexical": 1}}',
     "weights.lexical: there is no such field; there are vector, bm25, graph"),
    (MemoryInput, b'{"content": "a"}', "content: there is no such field; did you mean `text`?"),
    (MemoryInput, b'{"text": "a", "role": "user"}', "role: there is no such field; did you mean `speaker`?"),
    (MemoryInput, b'{"data": "b"}', "data: there is no such field; did you mean `text`?"),
    (MemoryInput, b'{"text": "a", "meta": {}}', "meta: there is no such field; did you mean `metadata`?"),
    (MemoryInput, b'{"text": "a", "doc_id": "d"}', "doc_id: there is no such field; did you mean `document_id`?"),
    (DocumentInput, b'{"text": "a", "kind": "chunk"}', "kind: there is no such field; there are id, title, text,"
     " content_base64, media_type, created_at, tags, metadata"),
    (MemoryInput, b'{"text": "a", "group_id": "ana"}',
     "group_id: there is no such field; each tenant has a namespace: in the path, or `namespace=` in Python"),
    (SearchRequest, b'{"query": "a", "group_ids": ["ana"]}',
     "group_ids: there is no such field; each tenant has a namespace: in the path, or `namespace=` in Python"),
    (SearchRequest, b'{"query": "a", "filters": {"user_id": "ana"}}',
     "filters.user_id: there is no such field; each tenant has a namespace: in the path, or `namespace=` in Python"),
    (SearchRequest, b'{"query": "a", "score_threshold": 0.3}',
     "score_threshold: there is no such field; did you mean `min_relevance`?"),
    (SearchRequest, b'{"query": "a", "rerank": true}', "rerank: there is no such field; did you mean `rescore`?"),
    (SearchRequest, b'{"query": "a", "max_tokens": 512}', "max_tokens: there is no such field; a context pack has it"),
    (SearchRequest, b'{"text": "a"}', "text: there is no such field; did you mean `query`?"),
    (AddRequest, b'{"messages": []}', "messages: there is no such field; did you mean `memories`?"),
    (MemoryPatch, b'{"id": "m1"}',
     "id: there is no such field; there are kind, title, speaker, session_id, document_id, created_at, expires_at,"
     " tags, metadata, text, position, entities, relations, supersedes"),
    (AddRequest, b'{"colour": 1}', "colour: there is no such field; the only one is memories"),
    (MemoryInput, b'{"text": "a", "id": 7}', "id: must be text of 1 to 256 characters or null, not a number"),
    (MemoryInput, b'{"text": "a", "metadata": []}', "metadata: must be a JSON object, not a list"),
    (MemoryInput, b'{"text": "a", "entities": ["Ana"]}', "entities.0: must be a JSON object with `name`, not text"),
    (ContextRequest, b'{"messages": [{"role": "user"}]}',
     "messages.0.content: is required: text of at most 1,000,000 characters or a list or null"),
    (FeedbackRequest, b'{"ratings": {"": 1}}', "ratings: each key must be text of 1 to 256 characters"),
    (FeedbackRequest, b'{"ratings": {"m": 2}}', "ratings.*: must be a number from 0 to 1"),
    (ExportHeader, b'{"trivet_export": 2}', "trivet_export: must be 1, not 2"),
    (NamespaceSettings, b'{"rules": [{"kind": "vague"}]}',
     "rules.0.kind: must be one of symmetric, inverse, transitive, custom, not 'vague'"),
    (NamespaceSettings, b'{"rules": [{}]}', "rules.0.kind: is required: one of symmetric, inverse, transitive, custom"),
    (NamespaceSettings, b'{"rules": [{"kind": "custom", "name": "n", "when": [["x"]], "then": ["x", "r", "y"]}]}',
     "rules.0.when.0: must be a list of 3"),
    (NamespaceSettings, b'{"query_log": {"redact": ["name"]}}',
     "query_log.redact.0: must be one of all, email, number, phone, url, not 'name'"),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "body", "message"), CASES)
def test_the_field_what_it_takes_and_what_was_meant(expected: type, body: bytes, message: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(body, type=expected)
    assert invalid_input(caught.value, expected).located == message
    assert not re.search(r"\b(str|int|float|bool|dict|array|NoneType|datetime)\b", message)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"text": "a"}', 'text: there is no such field here; did you mean {"memories": [{"text": \u2026}]}?'),
        (b'[{"text": "a"}]',
         'expected a JSON object with `memories`, not a list; did you mean {"memories": [\u2026]}?'),
        (b"{memories: []}", "not JSON: object keys must be strings (byte 1)"),
        (b'{"memories": {"text": "a"}}',
         'memories: must be a list of 1 to 1,000, not an object; did you mean {"memories": [\u2026]}?'),
    ],
)  # fmt: skip
def test_a_memory_that_is_sent_as_a_batch(body: bytes, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_batch(body)
    assert caught.value.located == message


def test_names_that_look_like_a_place_are_names() -> None:
    name = "a - at `$.b`"
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(msgspec.json.encode({"text": "a", "entities": [{name: 1}]}), type=MemoryInput)
    found: Any = invalid_input(caught.value, MemoryInput)
    assert found.loc == ("entities", 0, name)
