"""The view Status: jobs, and a server that is slow and empty."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import psycopg
import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import NAMESPACE, Console, add_sample
from tests.serving import on_a_port, settings_for

_RUNNING = """
    insert into job (ns, id, kind, done, total, started_at)
    select ns, 'j1', 'reembed', %s, 140, now() from namespace where name = %s
"""

_LINES = """cell => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return new Set([...range.getClientRects()].map(({ top }) => top)).size;
}"""


def test_a_running_job_is_shown_until_it_is_done(
    new_console: Callable[..., Console], database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its progress, without any click."""
    monkeypatch.setattr("retrieval.lifecycle.jobs.STALE_S", 3_600.0)  # nobody works on it
    with on_a_port(settings_for(database_url)) as address, psycopg.connect(database_url, autocommit=True) as db:
        add_sample(address)
        db.execute(_RUNNING, [35, NAMESPACE])
        console = new_console(address)
        page = console.open("state")
        bar = page.get_by_role("progressbar", name=f"reembed of {NAMESPACE}")
        expect(bar).to_be_visible()
        expect(page.get_by_role("region", name="Jobs")).to_contain_text("35 of 140 (25%)")
        assert console.violations() == []
        db.execute("update job set done = 70, updated_at = now()")
        expect(page.get_by_role("region", name="Jobs")).to_contain_text("70 of 140 (50%)")
        db.execute("update job set done = 140, state = 'done', updated_at = now(), finished_at = now()")
        expect(bar).to_be_hidden()
        expect(page.get_by_role("row").filter(has_text="reembed")).to_contain_text("done")
        assert httpx.get(f"{address}/v1/jobs").json()["jobs"][0]["state"] == "done"
        page.close()  # it polls the server, and must stop before that is gone


def test_what_could_not_be_read_is_read_again(console: Console) -> None:
    page = console.page
    page.clock.install()
    page.route("**/version", lambda route: route.abort())
    console.open("state")
    expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    page.unroute("**/version")
    page.clock.run_for(6_000)
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_text("Refreshes every five seconds")).to_be_visible()
    console.faults[:] = [fault for fault in console.faults if "ERR_FAILED" not in fault]


def test_a_server_that_stops_is_said_once_beside_what_was_read_before(console: Console) -> None:
    page = console.page
    page.clock.install()
    console.open("state")
    expect(page.get_by_text("checks passed")).to_be_visible()
    headings = page.get_by_role("heading").all_inner_texts()
    for path in ("v1", "version", "metrics"):
        page.route(f"**/{path}**", lambda route: route.abort())
    for _ in range(3):
        with page.expect_event("requestfailed", lambda request: request.url.endswith("/v1/state")):
            page.clock.run_for(5_000)
        expect(page.get_by_role("alert")).to_have_count(1)
        expect(page.get_by_role("alert")).to_contain_text("cannot be reached. What you see is from an earlier answer.")
    assert page.get_by_role("heading").all_inner_texts() == headings
    page.unroute_all()
    page.clock.run_for(6_000)
    expect(page.get_by_role("alert")).to_have_count(0)
    page.close()  # it polls the server, and must stop before that is gone
    console.faults[:] = [fault for fault in console.faults if "ERR_FAILED" not in fault]


def test_what_a_token_may_not_see_is_said_once(console: Console) -> None:
    refused = {"detail": "This needs the server's key"}
    for path in ("state", "jobs"):
        console.page.route(f"**/v1/{path}", lambda route: route.fulfill(status=403, json=refused))
    with console.page.expect_response("**/v1/jobs"), console.page.expect_response("**/v1/state"):
        page = console.open("state")
    expect(page.get_by_role("alert")).to_have_count(1)
    expect(page.get_by_role("alert")).to_contain_text("This needs the server's key")
    page.close()  # it polls the server, and must stop before that is gone
    console.faults[:] = [fault for fault in console.faults if "403" not in fault]


def test_a_slow_and_empty_server_is_shown(new_console: Callable[..., Console], database_url: str) -> None:
    """An answer that takes longer than five seconds is awaited before the next request."""
    with on_a_port(settings_for(database_url)) as address:
        page = new_console(address).page
        held: list[Route] = []
        page.route("**/v1/state", lambda route: held.append(route))
        page.clock.install()
        with page.expect_request("**/v1/state"):
            page.goto(f"{address}/#//state")
        expect(page.get_by_role("heading", name="Requests")).to_be_visible()
        page.clock.run_for(20_000)
        assert len(held) == 1
        held[0].continue_()
        expect(page.get_by_text("checks passed")).to_be_visible()
        with page.expect_request("**/v1/state"):
            page.clock.run_for(5_000)
        page.get_by_role("link", name="Ask", exact=True).click()
        expect(page.get_by_role("heading", name="Nothing stored yet")).to_be_visible()
        page.get_by_role("link", name="Add one").click()
        page.get_by_label("Text").fill("Dana moved to Porto.")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.locator(".memory-whole")).to_have_text("Dana moved to Porto.")
        page.close()  # it polls the server, and must stop before that is gone


def test_figures_stay_in_one_line_on_a_phone(new_console: Callable[..., Console], server: str) -> None:
    """And the longest part, the table of the namespaces, comes last."""
    console = new_console(server, viewport={"width": 375, "height": 812})
    page = console.open("state")
    expect(page.get_by_role("heading", level=2).last).to_have_text("Namespaces")
    expect(page.locator("td.number").filter(has_text="≤").first).to_contain_text("ms")
    missing = page.locator("dt").filter(has_text="Missing legs or rescorer")  # two in one answer count twice
    expect(missing).to_be_visible()
    assert missing.evaluate(_LINES) == 1
    assert page.eval_on_selector_all("td.number", f"cells => Math.max(...cells.map({_LINES}))") == 1
    assert not console.is_too_wide()
    page.close()  # it polls the server, and must stop before that is gone
