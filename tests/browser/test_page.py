"""The page itself: its content policy, key, colours, width, and axe's findings in every view."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import NAMESPACE, Console, add_sample
from tests.serving import on_a_port, settings_for

VIEWS = {
    "ask": "Ask shop",
    f"ask?q={quote('What does Dafydd do on Fridays?')}": "Intent",
    "graph": "Graph",
    "memories": "Memories",
    "memories/d01-001": None,
    "memories?session=d01": None,
    "tune": "Judgements",
    "state": "Checks",
}
"""Views, and a heading of each."""

FIRST_VIEW_BYTES = 200_000


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 375])
def test_every_view_is_accessible(new_console: Callable[..., Console], server: str, colours: str, width: int) -> None:
    """By axe's rules of WCAG 2.2 AA; and no view is wider than the screen."""
    size = {"width": width, "height": 812}
    console = new_console(server, viewport=size, color_scheme=colours, reduced_motion="reduce")
    for path, heading in VIEWS.items():
        page = console.open(path)
        if heading:
            expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
        assert console.violations() == [], path
        assert not console.is_too_wide(), path


@pytest.mark.parametrize(("width", "colours"), [(1440, "light"), (375, "dark")])
def test_the_api_pages_are_accessible(
    new_console: Callable[..., Console], server: str, colours: str, width: int
) -> None:
    console = new_console(server, viewport={"width": width, "height": 812}, color_scheme=colours)
    console.page.goto(f"{server}/docs#type-MemoryInput")
    expect(console.page.get_by_role("heading", name="MemoryInput", exact=True)).to_be_visible()
    assert not console.is_too_wide()
    assert console.violations(but=["color-contrast"]) == []
    # It compares each word's colours with those behind it, and all sections are made alike.
    console.page.evaluate("document.querySelectorAll('section').forEach((one, at) => at % 8 && one.remove())")
    assert console.page.locator("section").count() > 10
    assert console.violations() == []


def test_the_api_pages_show_more_than_their_contents_on_a_phone(
    new_console: Callable[..., Console], server: str
) -> None:
    page = new_console(server, viewport={"width": 390, "height": 844}).page
    page.goto(f"{server}/docs")
    expect(page.get_by_role("heading", level=1)).to_be_in_viewport()


def test_the_page_about_the_server_is_called_status(console: Console) -> None:
    page = console.open("state")
    expect(page.get_by_role("link", name="Status", exact=True)).to_have_attribute("aria-current", "page")
    expect(page.get_by_role("heading", level=1)).to_have_text("Status")
    page.close()  # it polls the server, and must stop before that is gone


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("memories", "Memories"),
        ("memories/d01-001", "d01-001 · Memories"),
        ("memories?session=d01", "d01 · Memories"),
        ("ask?q=Who is Biscuit?", "Who is Biscuit? · Ask"),
    ],
)
def test_the_title_says_what_is_open(console: Console, path: str, title: str) -> None:
    """So that tabs, bookmarks and the browser's history can be told apart; and the page has one main heading."""
    page = console.open(path)
    expect(page).to_have_title(f"{title} · shop · Trivet")
    expect(page.get_by_role("heading", level=1)).to_have_count(1)


def test_colours_are_switched_and_kept(console: Console) -> None:
    page = console.open()
    switch = page.get_by_role("button", name="Theme")
    root, ground = page.locator("html"), "getComputedStyle(document.documentElement).backgroundColor"
    by_system = page.evaluate(ground)
    switch.click()
    expect(root).to_have_attribute("data-theme", "light")
    assert page.evaluate(ground) == by_system
    switch.click()
    expect(root).to_have_attribute("data-theme", "dark")
    dark = page.evaluate(ground)
    assert dark != by_system
    page.reload()
    expect(root).to_have_attribute("data-theme", "dark")
    assert page.evaluate(ground) == dark


def test_a_key_is_asked_for_and_stays_in_the_tab(new_console: Callable[..., Console], database_url: str) -> None:
    """A wrong one is refused; the right one is only kept in this tab, and in no address."""
    with on_a_port(settings_for(database_url, api_key="open sesame")) as address:
        add_sample(address, authorization="Bearer open sesame")
        console = new_console(address)
        page = console.open("state")
        page.get_by_label("API key").fill("wrong")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("alert")).to_contain_text("does not accept this key")
        assert console.violations() == []
        page.get_by_label("API key").fill("open sesame")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("heading", name="Checks")).to_be_visible()
        page.reload()
        expect(page.get_by_role("heading", name="Checks")).to_be_visible()
        assert "sesame" not in page.url
        assert page.evaluate("JSON.stringify(localStorage)").count("sesame") == 0
        console.open("ask?q=Who is Biscuit?")
        code = page.get_by_label("Request code")  # names the key, and does not say it
        expect(code).to_contain_text('-H "Authorization: Bearer $TRIVET_API_KEY"')
        page.get_by_role("button", name="Python").click()
        expect(code).to_contain_text(f'trivet.Client("{address}", os.environ["TRIVET_API_KEY"], namespace="shop")')
        console.faults[:] = [fault for fault in console.faults if "401" not in fault]


def test_a_key_of_any_letters_may_be_typed_while_something_is_written(
    new_console: Callable[..., Console], database_url: str
) -> None:
    """A refused key locks nothing, and text being written when another key is needed is not lost."""
    with on_a_port(settings_for(database_url, api_key="ключ")) as address:
        console = new_console(address)
        page = console.open("memories?page=new")
        page.get_by_label("API key").fill("“ключ”")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("does not accept this key")
        page.reload()
        page.get_by_label("API key").fill("ключ")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Text")).to_be_focused()
        page.get_by_label("Text").fill("Biscuit is afraid of the lift.")
        page.evaluate("sessionStorage.clear()")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.get_by_label("API key")).to_be_focused()
        expect(page.get_by_label("Text")).to_be_hidden()
        page.keyboard.type("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("does not accept this key")
        page.get_by_label("API key").fill("ключ")
        page.keyboard.press("Enter")
        expect(page.get_by_text("Biscuit is afraid of the lift.")).to_be_visible()
        console.faults[:] = [fault for fault in console.faults if "401" not in fault]


def test_the_first_view_is_small(console: Console) -> None:
    sizes: dict[str, int] = {}
    console.page.on("requestfinished", lambda request: sizes.update({request.url: request.sizes()["responseBodySize"]}))
    console.open()
    assert 0 < sum(sizes.values()) < FIRST_VIEW_BYTES


def test_a_server_that_is_gone_is_said(console: Console) -> None:
    page = console.open()
    page.route("**/v1/**", lambda route: route.abort())
    page.get_by_role("searchbox").fill("Who is Biscuit?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").first).to_contain_text("cannot be reached")
    page.unroute("**/v1/**")
    page.get_by_role("button", name="Try again").first.click()
    expect(page.locator(".results")).to_be_visible()
    page.route("**/feedback", lambda route: route.abort())
    page.get_by_role("button", name="Relevant", exact=True).first.click()
    expect(page.locator(".toasts")).to_contain_text("Feedback not saved: The server cannot be reached.")
    console.faults[:] = [fault for fault in console.faults if "ERR_FAILED" not in fault]


def test_a_link_leads_to_the_top_of_a_view(console: Console) -> None:
    """The keyboard and a screen reader go on at its heading, where text can be typed at once in the field."""
    page = console.open("memories")
    heading = page.get_by_role("heading", level=1)
    page.get_by_role("link", name="session d01").last.click()
    expect(heading).to_have_text("Session d01")
    expect(heading).to_be_focused()
    expect(page.get_by_role("link", name="Trivet")).to_be_in_viewport()
    for link, place in (("Graph", heading), ("Memories", heading), ("Ask", page.get_by_role("searchbox"))):
        page.get_by_role("navigation", name="Views").get_by_role("link", name=link).click()
        expect(place).to_be_focused()
    page.go_back()
    expect(heading).to_have_text("Memories")
    expect(heading).to_be_focused()
    page.get_by_role("link", name="Add", exact=True).click()
    expect(page.get_by_label("Text")).to_be_focused()


def test_a_change_of_the_namespace_leaves_the_focus_where_it_is(console: Console) -> None:
    httpx.put(f"{console.url}/v1/namespaces/other", json={}).raise_for_status()
    page = console.open()
    namespace = page.get_by_role("banner").get_by_role("combobox")
    namespace.focus()
    namespace.select_option("other")
    expect(page.get_by_role("heading", name="Ask other")).to_be_visible()
    expect(namespace).to_be_focused()


@pytest.mark.parametrize("path", ["memories/d01-001", "memories?session=d01", "memories?page=documents", "state"])
def test_a_view_that_is_loading_says_so(console: Console, path: str) -> None:
    page, held = console.page, list[Route]()
    page.route("**/v1/**", lambda route: held.append(route))
    page.goto(f"{console.url}/#/{NAMESPACE}/{path}")
    loading = page.get_by_role("main").get_by_text("Loading…")
    expect(loading).to_be_visible()
    page.unroute("**/v1/**")
    page.reload()
    expect(page.get_by_role("main").get_by_role("heading", level=1)).to_be_visible()
    expect(loading).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)
    page.close()  # it may poll the server, and must stop before that is gone


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("#/nowhere/ask?q=hello", "no namespace"),
        ("#/shop/memories/no-such-memory", "there is no memory"),
        ("#/shop/memories?document=none", "there is no document"),
        ("#/shop/graph/zz", "there is no entity"),
        ("#/%E0%A4%A/ask?q=hello", "namespace"),
    ],
)
def test_wrong_addresses_are_said(console: Console, path: str, said: str) -> None:
    console.page.goto(f"{console.url}/{path}")
    expect(console.page.get_by_role("alert").first).to_contain_text(said)
    console.page.wait_for_load_state("networkidle")  # a view requests several things, all of which are missing
    console.faults[:] = [fault for fault in console.faults if "Failed to load resource" not in fault]


def test_the_files_have_the_policy(server: str) -> None:
    """No view may load or run anything that does not come from the server."""
    for path in ("/", "/console/app.js", "/console/app.css"):
        policy = httpx.get(f"{server}{path}").headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
