"""Takes the screenshots of the console: `make demo`, then `python docs/figures/console.py http://127.0.0.1:8321`.

The demo's questions are asked and judged by the sample chat's evidence, so that every view has something to show.
Needs a Chromium (Debian: `apt install chromium`).
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, ViewportSize, sync_playwright

import trivet
from retrieval.cli.demo import NAMESPACE, QUESTIONS, sample

FOLDER = Path(__file__).parent
QUESTION = "Which vet do Lucía and Maya share?"
SIZE = ViewportSize(width=1280, height=800)
LARGEST_BYTES = 120_000
WARM_UP = 5
SETTLING_MS = 3_000
"""Time for a view to load and for its animations to end."""


def main(server: str) -> None:
    """Save a screenshot of each view; Ask runs several times, so that it shows the time of a warm server."""
    judge(server)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport=SIZE, reduced_motion="reduce")
        ask(page, server, QUESTION)
        for _ in range(WARM_UP):
            page.get_by_role("button", name="Ask", exact=True).click()
            page.wait_for_timeout(SETTLING_MS / 5)
        save(page, "ask")
        for view in ("graph", "memories", "tune", "state"):
            page.goto(f"{server}/#/{NAMESPACE}/{view}")
            if view == "graph":
                page.locator(".entity-list").get_by_role("link", name="Lucía", exact=True).click()
            save(page, view)
        browser.close()


def judge(server: str) -> None:
    """Store which results of the demo's questions are evidence; repeated runs store it only once."""
    queries = {query.id: query for query in sample().judged}
    with trivet.Client(server, namespace=NAMESPACE) as client:
        for id_ in QUESTIONS:
            query = queries[id_]
            shown = [result.id for result in client.search(query.text).results]
            relevant = [memory for memory in shown if memory in query.grades]
            client.feedback(id=f"picture-{id_}", query=query.text, shown=shown, relevant=relevant, intent=query.type)


def ask(page: Page, server: str, question: str) -> None:
    """Type a question into the view Ask and wait for its results."""
    page.goto(f"{server}/#/{NAMESPACE}/ask")
    page.get_by_role("searchbox").fill(question)
    page.keyboard.press("Enter")
    page.wait_for_selector(".results")


def save(page: Page, view: str) -> None:
    """Save a screenshot as a PNG with a palette, to keep it small."""
    page.mouse.move(0, 0)
    page.wait_for_timeout(SETTLING_MS)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    for colours in (256, 96, 48):
        file = io.BytesIO()
        picture.quantize(colours, kmeans=1, dither=Image.Dither.NONE).save(file, "png", optimize=True)
        if file.tell() < LARGEST_BYTES:
            break
    (FOLDER / f"console-{view}.png").write_bytes(file.getvalue())


if __name__ == "__main__":
    main(sys.argv[1])
