"""The view Graph: used by keyboard alone and by mouse; a path shown by Ask is highlighted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import quote

import httpx
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.conftest import NAMESPACE, Console
from tests.processes import until
from tests.serving import on_a_port, settings_for

LABELS = """{
    const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.clearRect = function (...box) {
        window.labels = [];
        clearRect.apply(this, box);
    };
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        const { a, e, d, f } = this.getTransform();
        labels.push({ text, x: a * x + e, y: d * y + f, width: a * this.measureText(text).width });
        fillText.call(this, text, x, y);
    };
}"""
"""Keeps the texts that were drawn last on a canvas, with their places in its pixels."""

PLACES = """(element, names) => names.map((name) => {
    const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    while (!texts.nextNode().data.includes(name));
    const range = document.createRange();
    const start = texts.currentNode.data.indexOf(name);
    range.setStart(texts.currentNode, start);
    range.setEnd(texts.currentNode, start + name.length);
    const { left, top } = range.getBoundingClientRect();
    return left + 10_000 * top;
})"""
"""Where words of an element's text are shown: by line, then from the left."""


def tab_to(page: Page, target: Locator) -> None:
    """Press Tab until something has the focus."""
    for _ in range(200):
        if target.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError("no way to it by keyboard")


def entity_ids(console: Console, namespace: str = NAMESPACE) -> dict[str, str]:
    """The entities of a namespace by their names."""
    entities = httpx.get(f"{console.url}/v1/namespaces/{namespace}/entities").json()["entities"]
    return {one["name"]: one["id"] for one in entities}


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
    expect(page.locator(".entity-card")).to_be_focused()
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
    expect(way).to_be_visible()
    names = [node.inner_text() for node in way.locator(".path-node").all()][1:-1]
    assert names
    way.click()
    shown = page.locator(".panel", has=page.get_by_role("heading", name="How the memory was found"))
    for name in names:
        expect(shown).to_contain_text(name)


def test_names_in_other_scripts_stand_in_their_order_and_are_cut_between_letters(console: Console) -> None:
    names = ["نور", "ليلى", "جمعية أصدقاء مكتبة الإسكندرية القديمة"]
    relations = [{"source": "Google", "type": "employs", "target": names[0]},
                 {"source": names[1], "type": "works_at", "target": "Siemens"}]  # fmt: skip
    named = [{"name": name} for name in (names[2], "राष्ट्रीय प्रौद्योगिकी संस्थान परिसर पुस्तकालय")]
    memory = {"id": "m", "text": "Two are employed.", "entities": named, "relations": relations}
    httpx.post(f"{console.url}/v1/namespaces/right/memories", json={"memories": [memory]}).raise_for_status()
    console.page.add_init_script(LABELS)
    page = console.open(f"graph?path={quote(names[0])}|{quote(names[1])}&memory=m", namespace="right")
    way = page.locator(".panel", has=page.get_by_role("heading", name="How the memory was found"))
    expect(way).to_contain_text("m")
    first, second = way.evaluate(PLACES, names[:2])
    assert first < second
    for short in ("جمعية أصدقاء مكتبة الإس…", "राष्ट्रीय प्रौद्योगिकी संस्थान परिसर…"):
        until(partial(page.evaluate, f"labels.some(({{ text }}) => text === '\u2068{short}\u2069')"))
    page = console.open("memories/m", namespace="right")
    expect(page.locator(".facts")).to_contain_text("Siemens")
    places = page.locator(".facts dd").last.evaluate(PLACES, ["employs", *names[:2], "works_at"])
    assert places == sorted(places)


def test_how_two_entities_are_connected(console: Console) -> None:
    page = console.open(f"graph/{entity_ids(console)['Maya']}")
    page.get_by_label("Path to").fill("Dafydd")
    page.get_by_role("button", name="Find path").click()
    steps = page.locator(".path-steps").first
    expect(steps).to_be_in_viewport()
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
    for step in range(10_000):  # the forces may put entities anywhere
        x = box["x"] + box["width"] * (0.2 + 0.006 * (step % 100))
        y = box["y"] + box["height"] * (0.2 + 0.006 * (step // 100))
        page.mouse.move(x, y)
        if canvas.evaluate("element => element.style.cursor") == "pointer":
            page.mouse.click(x, y)
            break
    expect(page.locator(".entity-name, .memory-whole")).to_be_visible()


def test_long_names_are_shortened_and_cover_neither_each_other_nor_the_edge(
    new_console: Callable[..., Console], server: str
) -> None:
    names = [f"The Society of the Friends of the Harbour, {i}th Chapter" for i in range(30)]
    memories = [
        {"text": "They met.", "entities": [{"name": a}, {"name": b}]}
        for i, a in enumerate(names)
        for b in names[i + 1 : i + 4]
    ]
    httpx.post(f"{server}/v1/namespaces/societies/memories", json={"memories": memories}).raise_for_status()
    console = new_console(server, viewport={"width": 390, "height": 844}, reduced_motion="reduce")
    console.page.add_init_script(LABELS)
    page = console.open("graph", namespace="societies")
    expect(page.get_by_role("heading", name="entities in view")).to_be_visible()
    page.get_by_role("button", name="Zoom in").click()
    until(lambda: page.evaluate("labels.length > 5"))
    labels, width = page.evaluate("labels"), page.locator("canvas").evaluate("canvas => canvas.width")
    assert all("…" in label["text"] for label in labels)
    assert all(label["x"] >= 0 and label["x"] + label["width"] <= width for label in labels)
    for i, one in enumerate(labels):
        for other in labels[i + 1 :]:
            is_beside = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
            assert is_beside or abs(one["y"] - other["y"]) > 11
    canvas = page.locator("canvas")
    box = canvas.bounding_box()
    assert box is not None
    for x, y in ((x, one["y"]) for one in labels for x in (one["x"] - 4, one["x"] + one["width"] + 4)):
        page.mouse.move(box["x"] + x, box["y"] + y)
        if canvas.get_attribute("title"):
            break
    assert canvas.get_attribute("title") in names


def test_types_are_filtered(console: Console) -> None:
    page = console.open("graph")
    page.get_by_text("Filters", exact=True).click()
    heading = page.get_by_role("heading", name="entities in view")
    before = heading.inner_text()
    page.get_by_role("checkbox", name="speaker").uncheck()
    expect(heading).not_to_have_text(before)
    expect(page.locator(".entity-list")).not_to_contain_text("speaker")


def test_what_is_said_of_an_entity_is_as_of_the_chosen_day(console: Console) -> None:
    ids = entity_ids(console)
    page = console.open(f"graph/{ids['Maya']}?to={ids['Dafydd']}")
    card = page.locator(".entity-card")
    expect(card.locator(".path-steps").first).to_be_visible()
    expect(card).not_to_contain_text(" 0 mentions")
    page.get_by_text("Filters", exact=True).click()
    page.get_by_label("As of").fill("2000-01-01")
    expect(card).to_contain_text(" 0 mentions")
    expect(card).to_contain_text("Not connected within three steps.")


def test_an_answer_that_comes_too_late_is_left_out(console: Console) -> None:
    ids = entity_ids(console)
    page = console.open(f"graph/{ids['Maya']}")
    steps = page.locator(".path-steps")
    held: list[Route] = []

    def go(path: str) -> None:
        page.evaluate("path => { location.hash = path }", f"/{NAMESPACE}/graph/{path}")

    def hold(route: Route) -> None:
        is_late = any(ids[name] in route.request.url for name in ("Haruka", "Jonas"))
        held.append(route) if is_late else route.continue_()

    page.route("**/paths?*", hold)
    for name, then, shown in (
        ("Haruka", f"{ids['Maya']}?to={ids['Dafydd']}", steps.first),
        ("Jonas", "", page.get_by_role("heading", name="in view")),
    ):
        with page.expect_request("**/paths?*"):
            go(f"{ids['Maya']}?to={ids[name]}")
        go(then)
        expect(shown).to_be_visible()
        with page.expect_request_finished(lambda request: request.url == held[-1].request.url):
            held[-1].continue_()
        page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")  # it is drawn
        expect(steps.filter(has_text=name)).to_have_count(0)


def test_a_graph_that_is_still_read_is_not_called_empty(console: Console) -> None:
    page, held = console.page, list[Route]()
    page.route("**/graph?*", lambda route: held.append(route))
    with page.expect_request("**/graph?*"):
        page.goto(f"{console.url}/#/{NAMESPACE}/graph")
    expect(page.get_by_role("heading", name="Loading…")).to_be_visible()
    held[0].continue_()
    expect(page.get_by_role("heading", name="in view")).not_to_have_text("0 entities in view")


def test_an_error_stays_with_what_failed(console: Console) -> None:
    ids = entity_ids(console)
    console.page.route("**/paths?*", lambda route: route.fulfill(status=500, json={"detail": "too many steps"}))
    page = console.open(f"graph/{ids['Maya']}")
    page.get_by_label("Path to").fill("Dafydd")
    page.get_by_role("button", name="Find path").click()
    expect(page.get_by_role("alert")).to_contain_text("too many steps")
    console.page.unroute("**/paths?*")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".path-steps").first).to_contain_text("Dafydd")
    console.page.route("**/paths?*", lambda route: route.fulfill(status=500, json={"detail": "too many steps"}))
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("too many steps")
    page.go_back()
    expect(page.get_by_role("alert")).to_have_count(0)
    console.faults[:] = [fault for fault in console.faults if "500" not in fault]


def test_the_graph_is_downloaded_with_the_key(new_console: Callable[..., Console], database_url: str) -> None:
    headers = {"authorization": "Bearer sesame"}
    with on_a_port(settings_for(database_url, api_key="sesame")) as address:
        memories = {"memories": [{"text": "Ana met Bob in Porto."}]}
        httpx.post(f"{address}/v1/namespaces/keyed/memories", json=memories, headers=headers).raise_for_status()
        console = new_console(address)
        console.page.add_init_script("sessionStorage.setItem('trivet.key', 'sesame')")
        page = console.open("graph", namespace="keyed")
        with page.expect_download() as download:
            page.get_by_text("Download as GraphML").click()
        assert download.value.suggested_filename == "graph.graphml"
        assert "Porto" in download.value.path().read_text()


def test_an_entity_is_found_by_its_very_name(console: Console) -> None:
    """However many more frequent entities contain the name in theirs."""
    others = [{"text": "It is noted.", "entities": [{"name": f"Page{i % 60}"}]} for i in range(120)]
    exact = {"text": "Ana calls PA.", "entities": [{"name": "Ana"}, {"name": "PA"}]}
    path = f"{console.url}/v1/namespaces/names/memories"
    httpx.post(path, json={"memories": [*others, exact]}, timeout=300).raise_for_status()
    page = console.open(f"graph/{entity_ids(console, 'names')['Ana']}", namespace="names")
    page.get_by_label("Path to").fill("PA")
    page.get_by_role("button", name="Find path").click()
    expect(page.locator(".path-steps")).to_contain_text("PA")


def test_an_entity_that_is_gone_is_said_to_be_so_once(console: Console) -> None:
    page = console.open("graph/gone")
    expect(page.get_by_role("alert")).to_have_count(1)
    expect(page.get_by_role("alert")).to_contain_text("there is no entity with id 'gone'")
    page.get_by_role("link", name="Whole graph").click()
    expect(page.get_by_role("heading", name="entities in view")).to_be_visible()
    console.faults[:] = [fault for fault in console.faults if "404" not in fault]


def test_an_empty_namespace_says_how_it_is_filled(console: Console) -> None:
    httpx.put(f"{console.url}/v1/namespaces/empty", json={}).raise_for_status()
    page = console.open("graph", namespace="empty")
    expect(page.get_by_role("complementary")).to_contain_text("No memories yet")


def test_a_long_type_leaves_room_for_the_name(console: Console) -> None:
    entity = {"name": "Porto", "type": "t" * 100}
    path = f"{console.url}/v1/namespaces/types/memories"
    httpx.post(path, json={"memories": [{"text": "It rained.", "entities": [entity]}]}).raise_for_status()
    page = console.open("graph", namespace="types")
    link = page.get_by_role("link", name="Porto")
    expect(link).to_be_visible()
    expect(page.get_by_role("heading", name="1 entity in view")).to_be_visible()
    box = link.bounding_box()
    assert box is not None
    assert box["width"] > 30
    assert page.locator(".graph-side").evaluate("side => side.scrollWidth <= side.clientWidth")
