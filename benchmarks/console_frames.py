"""Frames per second of the console's graph while an entity is dragged: `python benchmarks/console_frames.py`.

300 entities joined by 1,000 edges with 5,000 memories, generated here, are shown by the built page in Chromium. Frames
are counted in the browser's trace.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from playwright.sync_api import Browser, Route, sync_playwright

PAGE = Path(__file__).parents[1] / "retrieval" / "console"
ENTITIES, EDGES, EVIDENCE = 300, 1_000, 5
SETTLED_S, DRAGGED_S = 3.0, 5.0


def made_up_graph() -> dict[str, Any]:
    """An answer of `GET /v1/namespaces/{ns}/graph`."""
    rng = random.Random(0)
    nodes = [
        {
            "id": str(i),
            "name": f"Entity {i}",
            "type": rng.choice(["name", "speaker", "term"]),
            "mentions": 300 // (i + 1),
        }
        for i in range(ENTITIES)
    ]
    pairs: set[tuple[int, int]] = set()
    while len(pairs) < EDGES:
        source, target = sorted((int(rng.betavariate(1, 3) * ENTITIES), rng.randrange(ENTITIES)))
        if source != target:
            pairs.add((source, target))
    edges = [
        {
            "source": str(source),
            "target": str(target),
            "type": None,
            "memories": EVIDENCE,
            "evidence": [f"m{n}-{i}" for i in range(EVIDENCE)],
        }
        for n, (source, target) in enumerate(sorted(pairs))
    ]
    return {"nodes": nodes, "edges": edges, "truncated": False}


def answer(route: Route) -> None:
    """Stand in for the server's API."""
    path = route.request.url.split("?")[0]
    if path.endswith("/graph"):
        route.fulfill(json=made_up_graph())
    elif path.endswith("/v1/namespaces"):
        route.fulfill(json={"namespaces": [{"name": "made-up"}]})
    else:
        route.fulfill(status=404, json={"detail": "not here"})


class _Page(SimpleHTTPRequestHandler):
    """The built files, under the server's paths."""

    def translate_path(self, path: str) -> str:
        return str(PAGE / (Path(path.split("?")[0]).name or "index.html"))

    def log_message(self, format: str, *args: object) -> None: ...


def frames_while_dragging(browser: Browser, url: str, trace: Path) -> tuple[int, float]:
    """Frames drawn and seconds passed while the pointer moves an entity in circles."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.route("**/v1/**", answer)
    page.goto(f"{url}/#/made-up/graph")
    page.wait_for_selector(".entity-list li")
    time.sleep(SETTLED_S)
    box = page.locator("canvas").bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    rng = random.Random(0)
    while True:  # until an entity is held, not a memory or the background
        page.mouse.move(middle[0] + rng.uniform(-80, 80), middle[1] + rng.uniform(-80, 80))
        page.mouse.down()
        if page.locator("canvas").evaluate("canvas => canvas.style.cursor") == "move":
            break
        page.mouse.move(*middle, steps=3)  # so that it is not a click
        page.mouse.up()
    browser.start_tracing(page=page, path=trace, categories=["disabled-by-default-devtools.timeline.frame"])
    started, moves = time.perf_counter(), 0
    while (passed := time.perf_counter() - started) < DRAGGED_S:
        moves += 1
        page.mouse.move(middle[0] + 120 * random.random(), middle[1] + 120 * ((moves % 40) / 40))
    browser.stop_tracing()
    page.mouse.up()
    events = json.loads(trace.read_bytes())["traceEvents"]
    return sum(event["name"] == "DrawFrame" for event in events), passed


def main() -> None:
    """Print the frames per second."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Page, directory=str(PAGE)))
    Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        frames, seconds = frames_while_dragging(
            browser, f"http://127.0.0.1:{server.server_port}", Path(folder) / "trace"
        )
        browser.close()
    print(f"{frames} frames in {seconds:.1f} s: {frames / seconds:.1f} a second")
    server.shutdown()


if __name__ == "__main__":
    main()
