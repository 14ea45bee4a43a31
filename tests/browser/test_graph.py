"""The view Graph: walked by keyboard alone and by mouse; the way that Ask shows is lit in it."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import httpx
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import NAMESPACE, Console


def tab_to(page: Page, target: Locator) -> None:
    """Press Tab until something has the focus."""
    for _ in range(200):
        if target.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError("no way to it by keyboard")


def test_two_steps_and_a_memory_by_keyboard_alone(console: Console) -> None:
    page = console.open("graph")
    first = page.locator(".entity-list a").first
    tab_to(page, first)
    name = first.inner_text()
    page.keyboard.press("Enter")
    expect(page.locator(".entity-name")).to_have_text(name)
    beside = page.locator(".entity-card .entity-list a").first
    expect(beside).to_be_visible()
    second = beside.inner_text()
    tab_to(page, beside)
    page.keyboard.press("Enter")
    expect(page.locator(".entity-name")).to_have_text(second)
    memory = page.locator(".entity-memories a").first
    tab_to(page, memory)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Edit")).to_be_visible()
    page.go_back()
    expect(page.locator(".entity-name")).to_have_text(second)


def test_the_way_of_an_answer_is_shown(console: Console) -> None:
    page = console.open(f"ask?q={quote('What does Dafydd do?')}")
    way = page.locator(".path").first
    names = [node.inner_text() for node in way.locator(".path-node").all()][1:-1]
    way.click()
    shown = page.locator(".panel", has=page.get_by_role("heading", name="How the memory was found"))
    for name in names:
        expect(shown).to_contain_text(name)


def test_how_two_entities_are_connected(console: Console) -> None:
    entities = {
        one["name"]: one["id"]
        for one in httpx.get(f"{console.url}/v1/namespaces/{NAMESPACE}/entities").json()["entities"]
    }
    page = console.open(f"graph/{entities['Maya']}")
    page.get_by_label("How is it connected with").fill("Dafydd")
    page.get_by_role("button", name="Show").click()
    steps = page.locator(".path-steps").first
    expect(steps).to_contain_text("Maya")
    expect(steps).to_contain_text("Dafydd")


def test_the_picture_answers_the_mouse(new_console: Callable[..., Console], server: str) -> None:
    """A click on an entity, or on a memory between two, opens it."""
    console = new_console(server, viewport={"width": 1440, "height": 900}, reduced_motion="reduce")  # nothing moves
    page = console.open("graph")
    expect(page.locator(".entity-list a").first).to_be_visible()
    canvas = page.locator("canvas")
    box = canvas.bounding_box()
    assert box is not None
    for step in range(10_000):  # entities lie wherever the forces have put them
        x = box["x"] + box["width"] * (0.2 + 0.006 * (step % 100))
        y = box["y"] + box["height"] * (0.2 + 0.006 * (step // 100))
        page.mouse.move(x, y)
        if canvas.evaluate("element => element.style.cursor") == "pointer":
            page.mouse.click(x, y)
            break
    expect(page.locator(".entity-name, .memory-whole")).to_be_visible()


def test_types_are_filtered(console: Console) -> None:
    page = console.open("graph")
    page.get_by_text("Filters", exact=True).click()
    heading = page.get_by_role("heading", name="entities in view")
    before = heading.inner_text()
    page.get_by_role("checkbox", name="speaker").uncheck()
    expect(heading).not_to_have_text(before)
    expect(page.locator(".entity-list")).not_to_contain_text("speaker")
