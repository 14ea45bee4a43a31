"""The requests of a client of the mixed load, without a server."""

from __future__ import annotations

from collections import Counter
from itertools import cycle, islice

import msgspec

from benchmarks.speed.mixed import SHARES, MixedClient
from retrieval.types.memory import MemoryInput

MEMORIES = (
    MemoryInput(id="m1", text="Boats.", kind="message", session_id="s1", position=4, tags=["half"]),
    MemoryInput(id="m2", text="A note of boats.", kind="chunk", document_id="d"),
)


def test_a_client_changes_only_what_it_has_written() -> None:
    client = MixedClient(7, 100, cycle(["Which boats?"]), cycle(MEMORIES))
    written: dict[str, MemoryInput] = {}
    requests = list(islice(client, 10 * sum(SHARES.values())))
    for request in requests:
        head, _, body = request.content.decode().partition("\r\n\r\n")
        method, path = head.split()[:2]
        assert path.startswith("/v1/namespaces/bench-100/")
        if request.kind == "add":
            (memory,) = msgspec.json.decode(body, type=dict[str, list[MemoryInput]])["memories"]
            assert memory.id not in written
            written[memory.id or ""] = memory
        elif request.kind == "patch":
            assert (method, path.rpartition("/")[2] in written) == ("PATCH", True)
        elif request.kind == "delete":
            assert (method, written.pop(path.rpartition("/")[2]).tags[-1]) == ("DELETE", client.tag)
    assert {(each.kind, each.session_id, each.position, each.document_id) for each in written.values()} == {
        ("message", "mixed-7-0", None, None),
        ("message", "mixed-7-1", None, None),
        ("message", "mixed-7-2", None, None),
        ("memory", None, None, None),
    }
    counted = Counter(request.kind for request in requests)
    assert counted["search"] == 10 * SHARES["search"]
    assert counted["add"] + counted["patch"] + counted["delete"] == 10 * 9
    assert counted["patch"] > 20
