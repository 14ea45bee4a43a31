"""The view Memories: finding, reading, adding, editing, superseding, deleting and restoring."""

from __future__ import annotations

import re
from urllib.parse import unquote

import httpx
from playwright.sync_api import Dialog, Page, Request, Route, expect

from tests.browser.conftest import NAMESPACE, Console

FIRST = "d01-001"


def stored(console: Console, memory_id: str) -> dict[str, object] | None:
    """A memory as the API has it."""
    response = httpx.get(f"{console.url}/v1/namespaces/{NAMESPACE}/memories/{memory_id}")
    return None if response.status_code == 404 else response.json()


def test_edit_and_delete_with_undo(console: Console) -> None:
    before = stored(console, FIRST)
    assert before is not None
    page = console.open(f"memories/{FIRST}")
    expect(page.get_by_text("Created (UTC)")).to_be_visible()
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Tags").fill("founding, shop")
    page.get_by_label("Metadata").fill('{"checked": true}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("founding, shop")).to_be_visible()
    edited = stored(console, FIRST)
    assert edited == {**before, "tags": ["founding", "shop"], "metadata": {"checked": True}}

    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".toasts")).to_contain_text("Deleted 1 memory")
    assert stored(console, FIRST) is None
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".toasts")).to_contain_text("Restored")
    assert stored(console, FIRST) == edited


def test_bad_metadata_is_refused_and_nothing_lost(console: Console) -> None:
    page = console.open("memories/d01-002")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Speaker").fill("Somebody")
    page.get_by_label("Metadata").fill("{not json")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("not valid JSON")
    expect(page.get_by_label("Speaker")).to_have_value("Somebody")
    memory = stored(console, "d01-002")
    assert memory is not None
    assert memory["speaker"] != "Somebody"


def test_what_is_written_is_not_lost_without_a_question(console: Console) -> None:
    """By Back, a link or another namespace; a form that is stored, cancelled or as it was asks nothing."""
    httpx.put(f"{console.url}/v1/namespaces/other", json={}).raise_for_status()
    page = console.open("memories")
    page.get_by_role("link", name="Add", exact=True).click()
    text = page.get_by_label("Text")
    text.fill("Half a thought")
    answers, asked = [False, False, False, True], list[Dialog]()

    def answer(dialog: Dialog) -> None:
        asked.append(dialog)
        dialog.accept() if answers[len(asked) - 1] else dialog.dismiss()

    page.on("dialog", answer)
    namespace = page.get_by_role("banner").get_by_role("combobox")
    graph = page.get_by_role("link", name="Graph", exact=True)
    for leave in (lambda: page.evaluate("history.back()"), graph.click, lambda: namespace.select_option("other")):
        with page.expect_event("dialog"):
            leave()
        expect(page).to_have_url(re.compile("page=new"))  # the browser has left, and comes back
    expect(namespace).to_have_value(NAMESPACE)
    expect(text).to_have_value("Half a thought")
    assert len(asked) == 3
    page.get_by_role("link", name="All memories").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Memories")
    assert len(asked) == 4

    page.get_by_role("link", name="Add", exact=True).click()
    text.fill("The bell is silver.")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".memory-whole")).to_be_visible()
    page.get_by_role("button", name="Edit").click()
    text.fill("The bell is golden.")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("link", name="All memories").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Memories")
    assert len(asked) == 4


def test_back_after_declined_links_leads_to_the_page_before_the_form(console: Console) -> None:
    page = console.open("memories")
    page.get_by_role("link", name="Add", exact=True).click()
    page.get_by_label("Text").fill("Half a thought")
    answers = [False, False, True]
    page.on("dialog", lambda dialog: dialog.accept() if answers.pop(0) else dialog.dismiss())
    for name in ("Graph", "Tune"):
        link = page.get_by_role("link", name=name, exact=True)
        link.click()
        expect(page).to_have_url(re.compile("page=new"))
        expect(link).to_be_focused()
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Memories")
    assert answers == []


def test_what_is_stored_after_its_form_was_left_spares_the_next_form(console: Console) -> None:
    httpx.put(f"{console.url}/v1/namespaces/left", json={}).raise_for_status()
    page = console.open("memories?page=new", namespace="left")
    answers, held = [True, False], list[Route]()
    page.on("dialog", lambda dialog: dialog.accept() if answers.pop(0) else dialog.dismiss())
    page.route("**/memories?*", lambda route: held.append(route), times=1)
    text, add = page.get_by_label("Text"), page.get_by_role("button", name="Add", exact=True)
    text.fill("The bell is silver.")
    with page.expect_request("**/memories?*"):
        add.click()
    expect(text).not_to_be_editable()  # what was typed now would be lost
    page.get_by_role("link", name="All memories").click()
    page.get_by_role("link", name="Add", exact=True).click()
    text.fill("Half a thought")
    held[0].continue_()
    expect(page.locator(".toasts")).to_contain_text("Added")
    expect(text).to_have_value("Half a thought")
    with page.expect_event("dialog"):
        page.get_by_role("link", name="All memories").click()
    expect(text).to_have_value("Half a thought")


def test_a_new_statement_supersedes_an_old_one(console: Console) -> None:
    page = console.open("memories?page=new")
    page.get_by_label("Text").fill("The spare key hangs in the blue cupboard.")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("link", name="Supersede").click()
    page.get_by_label("Text").fill("The spare key hangs behind the counter now.")
    page.get_by_role("button", name="Supersede").click()
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    history = page.locator(".history-of-memory li")
    expect(history).to_have_count(2)
    expect(history.first).to_contain_text("superseded")


def test_selected_memories_are_deleted_and_restored(console: Console) -> None:
    page = console.open("memories?words=kettle")
    rows = page.locator(".memory-row")
    expect(rows.first).to_be_visible()
    ids = [str(rows.nth(i).get_by_role("checkbox").get_attribute("aria-label")).removeprefix("Select ") for i in (0, 1)]
    for memory_id in ids:
        page.get_by_role("checkbox", name=f"Select {memory_id}", exact=True).check()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".toasts")).to_contain_text("Deleted 2 memories")
    assert [stored(console, memory_id) for memory_id in ids] == [None, None]
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".toasts")).to_contain_text("Restored")
    assert None not in [stored(console, memory_id) for memory_id in ids]


def test_a_deletion_is_undone_by_a_key(console: Console) -> None:
    """Except while somebody types, whose text it undoes."""
    page = console.open("memories?words=kettle")
    box = page.locator(".memory-row").first.get_by_role("checkbox")
    memory_id = str(box.get_attribute("aria-label")).removeprefix("Select ")
    box = page.get_by_role("checkbox", name=f"Select {memory_id}", exact=True)
    box.focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Delete").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".toasts")).to_contain_text("Deleted 1 memory")
    page.get_by_role("searchbox", name="Search").press("Control+z")
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    assert stored(console, memory_id) is None
    page.get_by_role("button", name="Select all shown").press("Control+z")
    expect(page.locator(".toasts")).to_contain_text("Restored")
    expect(box).to_be_visible()
    assert stored(console, memory_id) is not None


def test_what_was_deleted_before_a_failure_can_be_restored(console: Console) -> None:
    page = console.open("memories?words=kettle")
    page.get_by_role("button", name="Select all shown").click()
    deleted: list[str] = []

    def first_only(route: Route) -> None:
        if deleted or route.request.method != "DELETE":
            return route.fallback() if route.request.method != "DELETE" else route.fulfill(status=503, json={})
        deleted.append(route.request.url.rpartition("/")[2])
        return route.continue_()

    page.route("**/memories/*", first_only)
    page.get_by_role("button", name=re.compile(r"Delete \d+ memories")).click()
    expect(page.locator(".toasts")).to_contain_text("Deleted 1 memory")
    assert stored(console, deleted[0]) is None
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".toasts")).to_contain_text("Restored")
    assert stored(console, deleted[0]) is not None
    assert all("503" in fault for fault in console.faults)
    console.faults.clear()


def numbered(console: Console, namespace: str, n: int) -> str:
    """Store memories m000, m001 and so on, in two months; the path of the namespace's memories."""
    months = ["2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z"]
    memories = [{"id": f"m{i:03}", "text": f"Note {i}.", "created_at": months[i % 2]} for i in range(n)]
    path = f"{console.url}/v1/namespaces/{namespace}/memories"
    httpx.post(path, json={"memories": memories}, timeout=300).raise_for_status()
    return path


def delete_one(page: Page, memory_id: str) -> None:
    """Delete a memory in the list."""
    page.get_by_role("checkbox", name=f"Select {memory_id}", exact=True).check()
    page.get_by_role("button", name="Delete 1 memory").click()
    expect(page.get_by_role("checkbox", name=f"Select {memory_id}", exact=True)).to_have_count(0)


def test_a_deletion_leaves_the_list_where_it_was(console: Console) -> None:
    """Also if the list has loaded more meanwhile, or a later deletion stays; the timeline's counts follow."""
    numbered(console, "listed", 120)
    page = console.open("memories", namespace="listed")
    rows, more = page.locator(".memory-row"), page.get_by_role("button", name="Load more")
    delete_one(page, "m001")
    expect(page.locator("#timeline-title")).to_contain_text("All 119 memories")
    more.click()
    expect(rows).to_have_count(99)
    delete_one(page, "m070")
    expect(page.get_by_role("button", name="Undo")).to_have_count(2)
    page.get_by_role("button", name="Undo").first.click()
    expect(page.locator(".toasts")).to_contain_text("Restored")
    expect(page.locator("#timeline-title")).to_contain_text("All 119 memories")
    more.click()
    expect(rows).to_have_count(119)
    expect(page.locator(".list-head")).to_contain_text("All 119,")
    expect(rows.nth(1)).to_contain_text("Note 1.")
    expect(page.get_by_role("checkbox", name="Select m070", exact=True)).to_have_count(0)


def test_what_is_gone_already_stops_no_deletion(console: Console) -> None:
    path = numbered(console, "halves", 4)
    page = console.open("memories", namespace="halves")
    page.get_by_role("button", name="Select all shown").click()
    httpx.delete(f"{path}/m002").raise_for_status()
    page.get_by_role("button", name="Delete 4 memories").click()
    expect(page.locator(".toasts")).to_contain_text("Deleted 3 memories")
    expect(page.locator(".memory-row")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".memory-row")).to_have_count(3)
    console.faults[:] = [fault for fault in console.faults if "404" not in fault]


def test_undo_spares_what_was_rewritten(console: Console) -> None:
    path = numbered(console, "anew", 2)
    page = console.open("memories", namespace="anew")
    page.get_by_role("button", name="Select all shown").click()
    page.get_by_role("button", name="Delete 2 memories").click()
    expect(page.locator(".toasts")).to_contain_text("Deleted 2 memories")
    httpx.post(path, json={"memories": [{"id": "m000", "text": "A newer note."}]}).raise_for_status()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".toasts")).to_contain_text("Not restored: 1 memory rewritten in the meantime")
    assert [memory["text"] for memory in httpx.get(path).json()["memories"]] == ["A newer note.", "Note 1."]
    expect(page.locator(".memory-text")).to_have_text(["Note 1."])
    console.faults[:] = [fault for fault in console.faults if "404" not in fault]


def test_an_undo_leads_back_only_whoever_stayed(console: Console) -> None:
    path = numbered(console, "pages", 2)
    page = console.open("memories/m000", namespace="pages")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Memories")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".memory-whole")).to_have_text("Note 0.")
    page.reload()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("link", name="Add", exact=True).click()
    page.get_by_label("Text").fill("Half a thought")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".toasts")).to_contain_text("Restored")
    expect(page.get_by_label("Text")).to_have_value("Half a thought")
    assert httpx.get(f"{path}/m000").status_code == 200


def test_a_memory_replaces_several_others(console: Console) -> None:
    statements = [f"The upholstery workshop closes at {hour} on Fridays." for hour in ("five", "six", "seven")]
    texts = statements[:2] + [f"Order {n} is packed." for n in range(40)]  # words are only rare among other memories
    times = [f"2024-01-01T10:{minute:02}:00Z" for minute in range(len(texts))]
    memories = [{"text": text, "created_at": time} for text, time in zip(texts, times, strict=True)]
    path = f"{console.url}/v1/namespaces/hours/memories"
    httpx.post(path, json={"memories": memories}, timeout=300).raise_for_status()
    page = console.open("memories?page=new", namespace="hours")
    page.get_by_label("Text").fill(statements[2])
    page.get_by_role("button", name="Add", exact=True).click()
    replace = page.get_by_role("button", name="Replace The upholstery workshop")
    expect(replace).to_have_count(2)
    replace.evaluate_all("both => both.forEach((button) => button.click())")  # the second before the first is stored
    expect(page.get_by_text("Replaced", exact=True)).to_have_count(2)
    page.get_by_role("link", name="Done").click()
    expect(page.locator(".history-of-memory li")).to_have_count(3)


def test_a_day_begins_at_midnight(console: Console) -> None:
    times = ["2024-02-29T23:59:59.999Z", "2024-03-01T00:00:00Z", "2024-03-02T23:59:59Z", "2024-03-03T00:00:00Z"]
    memories = [{"id": f"m{i}", "text": f"Note {i}.", "created_at": time} for i, time in enumerate(times)]
    path = f"{console.url}/v1/namespaces/midnight/memories"
    httpx.post(path, json={"memories": memories}, timeout=300).raise_for_status()
    page = console.open("memories", namespace="midnight")
    page.get_by_label("From").fill("2024-03-01")
    page.get_by_label("To", exact=True).fill("2024-03-02")
    page.get_by_role("button", name="Apply", exact=True).click()
    rows = page.locator(".memory-row")
    expect(rows).to_have_count(2)
    assert ["Note 1." in rows.nth(0).inner_text(), "Note 2." in rows.nth(1).inner_text()] == [True, True]
    page.get_by_role("link", name="Clear").click()
    expect(rows).to_have_count(4)
    page.get_by_role("link", name="Feb 2024: 1").click()  # the timeline
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Note 0.")
    page = console.open("ask?q=note", namespace="midnight")
    page.get_by_text("Filters and time").click()
    page.get_by_label("Created from").fill("2024-03-01")
    expect(page.locator(".result")).to_have_count(3)
    expect(page.get_by_label("Created from")).to_have_value("2024-03-01")
    page = console.open("graph", namespace="midnight")
    page.get_by_label("Find").fill("Note 1")
    page.get_by_text("Filters", exact=True).click()
    with page.expect_request("**/graph?*") as sent:
        page.get_by_label("Memories from").fill("2024-03-01")
    assert "2024-02-29T23:59:59.999999Z" in unquote(sent.value.url)


def test_the_bars_of_months_begin_with_the_newest(console: Console) -> None:
    """Or with the one that is chosen."""
    times = [f"{2020 + month // 12}-{month % 12 + 1:02}-15T00:00:00Z" for month in range(60)]
    memories = [{"text": f"Note {i}.", "created_at": time} for i, time in enumerate(times)]
    path = f"{console.url}/v1/namespaces/years/memories"
    httpx.post(path, json={"memories": memories}, timeout=300).raise_for_status()
    page = console.open("memories", namespace="years")
    first, last = (page.get_by_role("link", name=f"{month}: 1") for month in ("Jan 2020", "Dec 2024"))
    expect(last).to_be_in_viewport()
    expect(first).not_to_be_in_viewport()
    first.click()
    expect(page.locator(".memory-row")).to_have_count(1)
    page.reload()
    expect(first).to_be_in_viewport()
    expect(last).not_to_be_in_viewport()


def test_a_filter_leaves_the_bars_of_months_as_they_are(console: Console) -> None:
    """They are of all memories, which are read once; the keyboard goes on at the bar that was pressed."""
    numbered(console, "barred", 4)
    page = console.open("memories", namespace="barred")
    read: list[str] = []
    page.on("request", lambda request: read.append(request.url) if "limit=1000" in request.url else None)
    bars = page.get_by_role("link", name=re.compile("(Jan|Feb) 2024: 2"))
    for bar in bars.all():
        bar.focus()
        page.keyboard.press("Enter")
        expect(bar).to_have_attribute("aria-current", "true")
        expect(page.locator(".list-head")).to_contain_text("All 2,")
        expect(bar).to_be_focused()
    assert read == []
    page.reload()
    expect(bars).to_have_count(2)
    assert len(read) == 1


def test_one_session_leads_to_the_next(console: Console) -> None:
    page = console.open("memories?session=d01")
    page.get_by_role("link", name="Next: d02").click()
    expect(page.get_by_role("heading", name="Session d02")).to_be_visible()
    page.get_by_role("link", name="Previous: d01").click()
    expect(page.get_by_role("heading", name="Session d01")).to_be_visible()


def test_the_list_is_filtered_and_goes_on(console: Console) -> None:
    page = console.open("memories")
    rows = page.locator(".memory-row")
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="Load more").click()
    expect(rows).to_have_count(100)
    page.get_by_role("search").get_by_label("Speaker").fill("Haruka")
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page).to_have_url(re.compile("speaker=Haruka"))
    expect(rows.filter(has_not_text="Haruka")).to_have_count(0)
    expect(rows.first).to_contain_text("Haruka")


def test_back_leads_to_where_the_list_was_left(console: Console) -> None:
    page = console.open("memories")
    rows = page.locator(".memory-row")
    page.get_by_role("button", name="Load more").click()
    expect(rows).to_have_count(100)
    rows.nth(80).locator(".memory-text").click()
    expect(page.locator(".memory-whole")).to_be_visible()
    page.go_back()
    expect(rows).to_have_count(100)
    expect(rows.nth(80)).to_be_in_viewport()
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Graph").click()
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Memories").click()
    expect(rows).to_have_count(50)
    expect(rows.first).to_be_in_viewport()


def test_a_session_is_read_as_a_chat(console: Console) -> None:
    page = console.open("memories")
    page.get_by_role("link", name="session d01").first.click()
    expect(page.get_by_role("heading", name="Session d01")).to_be_visible()
    turns = page.locator(".chat-turn")
    expect(turns.first).to_contain_text("new group for The Spare Spoke")
    assert page.locator(".chat-speaker").first.inner_text() == "Maya"


def test_a_document_is_read_with_its_chunks(console: Console) -> None:
    text = "# Rules\n\n## Keys\n\nThe last one out locks both doors. 🔑\n\n## Bikes\n\nNo bike leaves without lights.\n"
    body = {"id": "rules", "title": "House rules", "text": text, "media_type": "text/markdown"}
    path = f"{console.url}/v1/namespaces/papers/documents"
    httpx.post(path, json=body, timeout=300).raise_for_status()
    page = console.open("memories?page=documents", namespace="papers")
    page.get_by_role("link", name="House rules").click()
    expect(page.get_by_text("No bike leaves without lights.")).to_be_visible()


def test_what_somebody_said_is_forgotten(console: Console) -> None:
    said = [{"id": f"f{i}", "text": f"Bo: thing {i}", "speaker": "Bo"} for i in range(3)]
    path = f"{console.url}/v1/namespaces/forgetting/memories"
    httpx.post(path, json={"memories": said}, timeout=300).raise_for_status()
    page = console.open("memories?page=forget", namespace="forgetting")
    page.get_by_role("textbox", name="Name").fill("Bo")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("3 memories would be deleted for good")).to_be_visible()
    sent: list[str] = []

    def note(request: Request) -> None:
        sent.append(request.url)

    page.on("request", note)
    page.get_by_role("button", name="Delete 3 memories").dblclick()
    expect(page.get_by_text("3 memories deleted")).to_be_visible()
    assert [url for url in sent if url.endswith("/forget")] == [f"{console.url}/v1/namespaces/forgetting/forget"]
    assert httpx.get(path).json()["memories"] == []
    for view in ("memories", "ask"):
        console.open(view, namespace="forgetting").get_by_role("link", name="Add one").click()
        expect(page.get_by_role("heading", name="Add a memory")).to_be_visible()


def test_any_id_has_a_page(console: Console) -> None:
    ids = ["new", "documents", "forget", "a/b", "x?y#z %41"]
    path = f"{console.url}/v1/namespaces/ids/memories"
    httpx.post(path, json={"memories": [{"id": one, "text": f"Its id is {one}."} for one in ids]}).raise_for_status()
    for one in ids:
        page = console.open("memories", namespace="ids")
        page.get_by_role("link", name=f"Its id is {one}.").click()
        expect(page.locator(".memory-whole")).to_have_text(f"Its id is {one}.")


def test_what_is_forgotten_is_what_was_shown(console: Console) -> None:
    texts = [("Maya", "Maya: the till is empty."), ("Jon", "Jon: Maya has the key."), ("Jon", "Jon: it rains.")]
    said = [{"speaker": speaker, "text": text, "entities": [{"name": "Maya"}]} for speaker, text in texts]
    path = f"{console.url}/v1/namespaces/shown/memories"
    httpx.post(path, json={"memories": said}, timeout=300).raise_for_status()
    page = console.open("memories?page=forget", namespace="shown")
    name, show = page.get_by_role("textbox", name="Name"), page.get_by_role("button", name="Preview")
    what, delete = page.get_by_role("combobox", name="Delete"), page.get_by_role("button", name=re.compile("^Delete"))
    name.fill("Maya")
    show.click()
    expect(delete).to_have_text("Delete 1 memory")
    what.select_option("entity")
    expect(delete).to_have_count(0)

    held: list[Route] = []
    what.select_option("speaker")
    page.route("**/forget", lambda route: held.append(route) if not held else route.fallback())
    show.click()
    name.fill("Jon")
    show.click()
    expect(delete).to_have_text("Delete 2 memories")
    held[0].abort()
    delete.click()
    expect(page.get_by_text("2 memories deleted")).to_be_visible()
    assert [memory["speaker"] for memory in httpx.get(path).json()["memories"]] == ["Maya"]


def test_numbers_of_the_metadata_are_kept(console: Console) -> None:
    """Also numbers that JavaScript lacks, after an edit of other fields and an undone deletion."""
    path = f"{console.url}/v1/namespaces/numbers/memories"
    before = '{"flake": 12345678901234567890, "nanos": 1700000000123000000, "share": 1.0, "n": 1}'
    content = f'{{"memories": [{{"id": "a", "text": "It snows.", "metadata": {before}}}]}}'
    httpx.post(path, content=content, headers={"content-type": "application/json"}).raise_for_status()
    page = console.open("memories/a", namespace="numbers")
    page.get_by_role("button", name="Edit").click()
    metadata = page.get_by_label("Metadata")
    expect(metadata).to_have_css("unicode-bidi", "normal")  # brackets stay in place beside Arabic keys
    metadata.fill(metadata.input_value().replace('"n": 1', '"n": 2'))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text('"n":2')).to_be_visible()
    edited = '{"n":2,"flake":12345678901234567890,"nanos":1700000000123000000,"share":1.0}'
    assert edited in httpx.get(f"{path}/a").text
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".toasts")).to_contain_text("Restored")
    assert edited in httpx.get(f"{path}/a").text


def test_a_browser_that_rounds_changes_no_metadata(console: Console) -> None:
    path = f"{console.url}/v1/namespaces/rounded/memories"
    memory = {"id": "a", "text": "It snows.", "metadata": {"flake": 12345678901234567890}}
    httpx.post(path, json={"memories": [memory]}).raise_for_status()
    console.page.add_init_script("delete JSON.rawJSON")
    page = console.open("memories/a", namespace="rounded")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Title").fill("Weather")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Weather")).to_be_visible()
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Metadata").fill(page.get_by_label("Metadata").input_value().replace("flake", "snow"))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("cannot keep a number")
    assert httpx.get(f"{path}/a").json()["metadata"] == memory["metadata"]
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".toasts")).to_contain_text("Deleted 1 memory")
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)


def test_a_double_click_adds_one_memory(console: Console) -> None:
    page = console.open("memories?page=new", namespace="double")
    page.get_by_label("Text").fill("The bell rings twice.")
    page.get_by_role("button", name="Add", exact=True).dblclick()
    expect(page.locator(".memory-whole")).to_be_visible()
    assert len(httpx.get(f"{console.url}/v1/namespaces/double/memories").json()["memories"]) == 1


def test_a_tag_may_have_commas_and_quotes(console: Console) -> None:
    path = f"{console.url}/v1/namespaces/tagged/memories"
    tags = ["red, green", 'the "old" one', '"', "plain"]
    memories = [{"id": "a", "text": "Tea.", "tags": tags}, {"id": "b", "text": "Milk.", "tags": ["plain"]}]
    httpx.post(path, json={"memories": memories}).raise_for_status()
    page = console.open("memories/a", namespace="tagged")
    page.get_by_role("button", name="Edit").click()
    field = page.get_by_label("Tags")
    field.fill(f"{field.input_value()}, more")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("more")).to_be_visible()
    assert httpx.get(f"{path}/a").json()["tags"] == [*tags, "more"]
    page.get_by_role("link", name="All memories").click()
    page.get_by_role("search").get_by_label("Tags").fill('"red, green", plain')
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.locator(".memory-row")).to_have_count(1)


LONG = "x" * 200


def test_long_names_widen_no_view(console: Console) -> None:
    memory = {"id": LONG, "text": f"The ledger is {LONG}.", "speaker": LONG, "session_id": LONG, "tags": [LONG]}
    rest = {"title": LONG, "entities": [{"name": LONG}, {"name": "Ana"}], "metadata": {LONG: LONG}}
    path = f"{console.url}/v1/namespaces/long"
    httpx.post(f"{path}/memories", json={"memories": [memory | rest]}, timeout=300).raise_for_status()
    httpx.post(f"{path}/documents", json={"id": LONG, "text": "Rules.", "title": LONG}, timeout=300).raise_for_status()
    entities = httpx.get(f"{path}/entities").json()["entities"]
    views = ["memories", f"memories/{LONG}", f"memories?session={LONG}", "memories?page=documents", "ask?q=ledger"]
    views += [f"memories?document={LONG}", f"memories?page=new&supersedes={LONG}", f"memories?words={LONG}"]
    views += ["graph", *(f"graph/{entity['id']}" for entity in entities)]
    for width in (1440, 375):
        console.page.set_viewport_size({"width": width, "height": 900})
        for view in views:
            page = console.open(view, namespace="long")
            expect(page.locator("main").get_by_text(LONG).filter(visible=True).first).to_be_visible()
            assert not console.is_too_wide(), view
            assert page.locator("aside").evaluate_all("all => all.every(e => e.scrollWidth <= e.clientWidth)"), view


def test_a_session_is_in_the_order_of_its_moments(console: Console) -> None:
    """A turn without a position comes after those with one, as it was added after them."""
    times = ["10:00:00.500000Z", "10:00:00Z", "09:59:59.999Z", "10:00:00.000300Z"]
    turns = [{"text": time, "created_at": f"2024-01-01T{time}", "session_id": "s"} for time in times]
    path = f"{console.url}/v1/namespaces/moments/memories"
    httpx.post(path, json={"memories": turns}).raise_for_status()
    page = console.open("memories?session=s", namespace="moments")
    expect(page.locator(".chat-turn > span")).to_have_text([times[2], times[1], times[3], times[0]])
    mixed = [{**turn, "session_id": "t", "position": at} for turn, at in zip(turns, (0, 1, None), strict=False)]
    httpx.post(path, json={"memories": mixed}).raise_for_status()
    page = console.open("memories?session=t", namespace="moments")
    expect(page.locator(".chat-turn > span")).to_have_text(times[:3])


def test_other_directions_are_kept(console: Console) -> None:
    """A right-to-left name comes before its date; each text starts on the side of its own direction."""
    path = f"{console.url}/v1/namespaces/right/memories"
    memory = {"id": "a", "text": "שלום, Ana!", "speaker": "דנה", "session_id": "s"}
    httpx.post(path, json={"memories": [memory]}).raise_for_status()
    x_of = """(node, i) => {
        const range = new Range();
        range.setStart(node, i);
        range.setEnd(node, i + 1);
        return range.getBoundingClientRect().x;
    }"""
    page = console.open("memories", namespace="right")
    line = page.locator(".memory-row .hint > span").first
    expect(line).to_contain_text("דנה")
    name = "document.createTreeWalker(line, NodeFilter.SHOW_TEXT).nextNode()"
    name_x, date_x = (line.evaluate(f"line => ({x_of})({node}, 0)") for node in (name, "line.childNodes[2]"))
    assert name_x < date_x
    places = {"memories": ".memory-text", "memories/a": ".memory-whole", "memories?session=s": ".chat-turn span"}
    for view, place in places.items():
        line = console.open(view, namespace="right").locator(place)
        expect(line).to_be_visible()
        begin, end = (line.evaluate(f"line => ({x_of})(line.firstChild, {i})") for i in (0, 9))
        assert begin > end, view


def test_a_page_that_cannot_be_read_is_said_where_it_was_asked_for(console: Console) -> None:
    numbered(console, "broken", 60)
    page = console.open("memories", namespace="broken")
    page.route("**/memories?*cursor=*", lambda route: route.abort())
    page.get_by_role("button", name="Load more").click()
    expect(page.get_by_role("alert")).to_be_in_viewport()
    page.unroute("**/memories?*cursor=*")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".memory-row")).to_have_count(60)
    expect(page.get_by_role("alert")).to_have_count(0)
    console.faults[:] = [fault for fault in console.faults if "ERR_FAILED" not in fault]


def test_a_namespace_is_not_called_empty_once_the_first_page_is_deleted(console: Console) -> None:
    numbered(console, "halved", 60)
    page = console.open("memories", namespace="halved")
    page.get_by_role("button", name="Select all shown").click()
    page.get_by_role("button", name="Delete 50 memories").click()
    expect(page.locator(".memory-row")).to_have_count(0)
    expect(page.get_by_text("No memories yet")).to_have_count(0)
    page.route("**/memories?*cursor=*", lambda route: route.abort(), times=1)
    page.get_by_role("button", name="Load more").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_text("No memories yet")).to_have_count(0)
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".memory-row")).to_have_count(10)
    console.faults[:] = [fault for fault in console.faults if "ERR_FAILED" not in fault]
