"""The console in a real Chromium, on a real server with the first sessions of the sample chat.

Needs a Chromium: Debian's (`apt install chromium`), or the one that `TRIVET_CHROMIUM` names.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from retrieval.cli.demo import sample
from tests.conftest import PostgresServer
from tests.processes import PATIENCE_S
from tests.serving import on_a_port, settings_for

expect.set_options(timeout=PATIENCE_S * 1000)

CHROMIUM = os.environ.get("TRIVET_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu"),
    # Pages behind the address bar, which Chromium loads for each window: half of its work in these tests. The switch
    # replaces Playwright's own, which concerns what these pages do not use.
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup",
]
NAMESPACE = "shop"
MESSAGES = 140
NOTES_STAY = """{
    const later = window.setTimeout;
    window.setTimeout = (run, ms, ...rest) => later(run, ms >= 5_000 ? 1e9 : ms, ...rest);
}"""
"""Keep toasts until the page is left: on a busy machine pressing Undo may take longer."""

WCAG_AA = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


@dataclass
class Console:
    """A page of the console, and its faults, of which a good page has none.

    Attributes:
        faults: errors and warnings of the page, violations of its policy, failed requests.
        foreign: requests to other origins.
    """

    page: Page
    url: str
    faults: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def open(self, path: str = "", namespace: str = NAMESPACE) -> Page:
        """Open a view and wait until it has loaded."""
        self.page.goto(f"{self.url}/#/{namespace}/{path}")
        self.page.wait_for_load_state("networkidle")
        return self.page

    def violations(self, *, but: Sequence[str] = ()) -> list[str]:
        """The violations of WCAG 2.2 AA that axe finds in the page, except by some rules."""
        rules = {rule: {"enabled": False} for rule in but}
        options = {"runOnly": WCAG_AA, "resultTypes": ["violations"], "rules": rules}
        found = Axe().run(self.page, options=options).response["violations"]
        return [f"{one['id']}: {node['html']}" for one in found for node in one["nodes"]]

    def is_too_wide(self) -> bool:
        """Whether the page scrolls sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


@pytest.fixture(scope="module")
def chromium(postgres_server: PostgresServer) -> Iterator[Browser]:
    """One browser for all tests of a module.

    While Playwright is open it keeps an event loop in this thread: no test of another module could start its own,
    and the database's server must be started before.
    """
    if CHROMIUM is None:
        pytest.skip("no chromium: apt install chromium, or set TRIVET_CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(chromium: Browser, postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a server with a part of the sample chat."""
    with postgres_server.clone() as url, on_a_port(settings_for(url)) as address:
        add_sample(address)
        yield address


def add_sample(address: str, **headers: str) -> None:
    """Store the first messages of the sample chat over HTTP."""
    memories = msgspec.to_builtins([row.memory for row in sample().corpus[:MESSAGES]])
    path = f"{address}/v1/namespaces/{NAMESPACE}/memories"
    httpx.post(path, json={"memories": memories}, headers=headers, timeout=300).raise_for_status()


@contextmanager
def _page(chromium: Browser, server: str, **options: Any) -> Iterator[Console]:
    """A page in its own context; leaving it fails if the page had any fault."""
    context = chromium.new_context(**options)
    page = context.new_page()
    page.add_init_script(NOTES_STAY)
    one = Console(page, server)

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            one.faults.append(message.text)

    def requested(request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(server).netloc and not request.url.startswith("data:"):
            one.foreign.append(request.url)

    page.on("console", said)
    page.on("pageerror", lambda error: one.faults.append(str(error)))
    page.on("request", requested)
    page.set_default_timeout(PATIENCE_S * 1000)
    yield one
    context.close()
    assert one.faults == []
    assert one.foreign == []


@pytest.fixture
def console(chromium: Browser, server: str) -> Iterator[Console]:
    """A page at 1440 x 900 px in light colours that must be free of faults at the end."""
    with _page(chromium, server, viewport={"width": 1440, "height": 900}) as one:
        yield one


@pytest.fixture
def new_console(chromium: Browser) -> Iterator[Callable[..., Console]]:
    """Makes pages with other options of Playwright's `new_context`, and for other servers."""
    with ExitStack() as stack:
        yield lambda server, **options: stack.enter_context(_page(chromium, server, **options))
