"""How long one client's request delays the others: the longest wait of a heartbeat during hostile requests.

Starts its own server. Other checkouts are measured in the same run if their folders are given:

    python benchmarks/stalls.py [OTHER_CHECKOUT ...]
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import sys
import tempfile
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path

from benchmarks.speed.server import CHECKOUT, serving

LOG = Path(tempfile.gettempdir()) / "trivet-stalls.log"
MEMORIES = "/v1/namespaces/a/memories"
JSON, NDJSON = "application/json", "application/x-ndjson"

NUMBERS = "[" + "1," * 7_900_000 + "1]"
LINE = '{"text": "a", "metadata": {"a": [' + "1," * 520_000 + "1]}}\n"
FULL = {"a": ["x" * 50] * 1_100}

REQUESTS: tuple[tuple[str, str, str, str, str], ...] = (
    ("nothing beside the heartbeat", "GET", "/health/live", JSON, ""),
    ("a memory with 8 million numbers", "POST", MEMORIES, JSON,
     '{"memories": [{"text": "a", "metadata": {"a": ' + NUMBERS + "}}]}"),
    ("a patch with them", "PATCH", f"{MEMORIES}/m", JSON, '{"metadata": {"a": ' + NUMBERS + "}}"),
    ("a filter with them", "POST", "/v1/namespaces/a/search", JSON,
     '{"query": "a", "filters": {"metadata": {"a": ' + NUMBERS + "}}}"),
    ("feedback with them", "POST", "/v1/namespaces/a/feedback", JSON, '{"query": "a", "shown": ' + NUMBERS + "}"),
    ("a batch of 8 million nothings", "POST", MEMORIES, JSON, '{"memories": ' + NUMBERS + "}"),
    ("a batch of empty objects", "POST", MEMORIES, JSON,
     '{"memories": [{"text": "a", "metadata": {"a": [' + "{}," * 5_000_000 + "1]}}]}"),
    ("15 bulk lines of 1 MB", "POST", f"{MEMORIES}/bulk", NDJSON, LINE * 15),
    ("a body of 10 MB that is refused", "POST", MEMORIES, JSON, '{"memorys": "' + "ab, " * 2_500_000 + '"}'),
    ("a query of 10 MB", "POST", "/v1/namespaces/a/search", JSON, '{"query": "' + "ab, " * 2_500_000 + '"}'),
    ("a text of 15 MB of escapes", "POST", MEMORIES, JSON, '{"memories": [{"text": "' + "\\u00e9" * 2_500_000 + '"}]}'),
    ("half surrogate pairs", "POST", MEMORIES, JSON, '{"memories": [{"text": "' + "\\ud800" * 2_500_000 + '"}]}'),
    ("15 MB of spaces", "POST", MEMORIES, JSON, '{"memories": [' + " " * 15_000_000 + "]}"),
    ("15 MB of brackets", "POST", MEMORIES, JSON, '{"memories": [{"metadata": ' + "[" * 15_000_000),
    ("messages of 15 MB", "POST", "/v1/namespaces/a/context", JSON,
     json.dumps({"messages": [{"role": "user", "content": "Boats, and more boats. " * 2_600}] * 250})),
    ("200 memories with 60 KB of metadata", "POST", MEMORIES, JSON,
     json.dumps({"memories": [{"id": f"m{at}", "text": f"Boat {at}", "metadata": FULL} for at in range(200)]})),
    ("a listing of them", "GET", f"{MEMORIES}?limit=1000", JSON, ""),
    ("a search for them", "POST", "/v1/namespaces/a/search", JSON, '{"query": "boat", "top_k": 200}'),
)  # fmt: skip


def beat(port: int, stop: Event, wait: Connection) -> None:
    """Request the server's health repeatedly; report the longest wait for an answer, in seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    longest = 0.0
    while not stop.is_set():
        started = time.perf_counter()
        connection.request("GET", "/health/live")
        connection.getresponse().read()
        longest = max(longest, time.perf_counter() - started)
        time.sleep(0.002)
    wait.send(longest)


def measured(port: int, method: str, path: str, media_type: str, body: str) -> tuple[int, float, float]:
    """Status, seconds of the request, longest wait of the heartbeat meanwhile."""
    stop = multiprocessing.Event()
    received, sent = multiprocessing.Pipe(duplex=False)
    heart = multiprocessing.Process(target=beat, args=(port, stop, sent))
    heart.start()
    time.sleep(0.3)
    started = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    with suppress(BrokenPipeError):  # refused before it is sent completely
        connection.request(method, path, body.encode(), {"content-type": media_type})
    try:
        answer = connection.getresponse()
        answer.read()
        status = answer.status
    except ConnectionError:
        status = 0
    seconds = time.perf_counter() - started
    stop.set()
    wait = received.recv()
    heart.join()
    return status, seconds, wait


def main() -> None:
    for checkout in (*(Path(other).resolve() for other in sys.argv[1:]), CHECKOUT):
        print(f"{'this checkout' if checkout == CHECKOUT else checkout.name}\n{'':40}status  request   longest wait")
        with tempfile.TemporaryDirectory(prefix="trivet-stalls-") as folder:
            Path(folder).chmod(0o755)  # so that the database's user may enter
            with serving(Path(folder) / "data", log=LOG, checkout=checkout) as server:
                for name, *request in REQUESTS:
                    status, seconds, wait = measured(server.port, *request)
                    print(f"{name:40}{status:6} {seconds:7.2f} s {wait * 1_000:9.0f} ms", flush=True)


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")  # so that the requests are not built again
    main()
