"""The view Ask: how it shows an answer, and that dragging changes it."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.conftest import NAMESPACE, Console

QUESTION = "Which vet does Biscuit go to?"
ASKED = f"ask?q={quote(QUESTION)}"


def final_order(page: Page) -> list[str]:
    """Ids of the last column."""
    order: list[str] = page.eval_on_selector_all(".bump-main li", "rows => rows.map(row => row.dataset.memory)")
    return order


def drag(page: Page, slider: str, share: float) -> None:
    """Move a slider with the mouse to a share of its length."""
    handle = page.get_by_role("slider", name=slider)
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    assert box is not None
    span = float(handle.get_attribute("max") or 1) - float(handle.get_attribute("min") or 0)
    now = (float(handle.input_value()) - float(handle.get_attribute("min") or 0)) / span
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 8 + now * (box["width"] - 16), middle)
    page.mouse.down()
    page.mouse.move(box["x"] + share * box["width"], middle, steps=5)
    page.mouse.up()


def test_a_question_is_answered_with_its_reasons(console: Console) -> None:
    page = console.open()
    page.get_by_role("searchbox").fill(QUESTION)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Intent")).to_be_visible()
    request = {"query": QUESTION, "explain": True}
    answer = httpx.post(f"{console.url}/v1/namespaces/{NAMESPACE}/context", json=request).json()
    expect(page.locator(".bump-main li")).to_have_count(10)
    expect(page.get_by_text("The number beside a memory is its place in the final list")).to_be_visible()
    assert final_order(page) == [result["id"] for result in answer["results"][:10]]
    pack = page.get_by_label("Pack text")
    expect(pack).to_have_text(answer["context"])
    first = page.locator(".result").first
    expect(first).to_contain_text(answer["results"][0]["text"])
    expect(first.locator(".evidence")).to_contain_text("cosine")
    expect(first.locator(".evidence")).to_contain_text("Matches “Biscuit” (in")
    expect(page.get_by_text(f"{answer['tokens_used']:,} of 2,048 tokens")).to_be_visible()


def test_a_misspelt_question_is_shown_as_it_was_searched_for(console: Console) -> None:
    page = console.open("ask?q=Who+walks+Bisciut%3F")
    expect(page.get_by_text("Searched for: Who walks Biscuit?")).to_be_visible()
    expect(page.locator(".result").first).to_contain_text("Biscuit")


def test_dragging_a_weight_changes_the_order(console: Console) -> None:
    page = console.open(ASKED)
    request = page.get_by_label("Request code")  # of the answer shown, as each step of a drag has its own
    expect(request).to_be_visible()
    for slider, share in (("Vector", 1.0), ("BM25", 0.0), ("Graph", 0.0)):
        drag(page, slider, share)
    expect(request).to_contain_text('"weights":{"vector":1,"bm25":0,"graph":0}')
    expect(page.locator(".verdict")).to_contain_text("100%")
    by_vector = final_order(page)
    drag(page, "BM25", 1.0)
    drag(page, "Vector", 0.0)
    expect(request).to_contain_text('"weights":{"vector":0,"bm25":1,"graph":0}')
    assert final_order(page) != by_vector
    page.get_by_role("button", name="Reset all").click()
    expect(request).not_to_contain_text("weights")


def test_only_weights_that_can_be_dragged_say_so(console: Console) -> None:
    """There are none before the first answer, and none to change if a single leg answers."""
    page = console.open()
    weights = page.get_by_role("group", name="Weights")
    expect(page.get_by_role("slider", name="Vector")).to_be_disabled()
    expect(page.get_by_role("slider", name="rrf_k")).to_be_disabled()
    expect(weights).not_to_contain_text("drag")
    page.get_by_role("searchbox").fill(QUESTION)
    page.keyboard.press("Enter")
    expect(page.get_by_role("slider", name="rrf_k")).to_be_enabled()
    expect(weights).to_contain_text("(learned; drag to change)")
    page.get_by_label("Mode").select_option("bm25")
    expect(page.get_by_role("slider", name="Vector")).to_be_disabled()
    expect(weights).not_to_contain_text("drag")


def test_weights_that_are_refused_can_be_changed_by_keyboard(console: Console) -> None:
    page = console.open(ASKED)
    expect(page.locator(".result").first).to_be_visible()
    for leg in ("BM25", "Graph", "Vector"):
        slider = page.get_by_role("slider", name=leg)
        slider.focus()
        page.keyboard.press("Home")
    expect(page.get_by_role("alert")).to_contain_text("at least one weight must be above 0")
    expect(slider).to_be_focused()
    page.keyboard.press("End")
    expect(page.locator(".result").first).to_be_visible()
    console.faults[:] = [fault for fault in console.faults if "422" not in fault]


def test_a_slider_has_a_short_name_and_its_hint_as_description(console: Console) -> None:
    page = console.open(ASKED)
    for name in ("Vector", "rrf_k", "Hops", "Token budget"):
        expect(page.get_by_role("slider", name=name, exact=True)).to_be_visible()
    expect(page.get_by_role("slider", name="Hops")).to_have_accessible_description(
        "How many steps to walk from the question's entities."
    )


def test_two_profiles_are_compared(console: Console) -> None:
    page = console.open(ASKED)
    page.get_by_role("button", name="Compare settings").click()
    page.get_by_role("combobox", name="Profile", exact=True).select_option("research")
    summary = page.get_by_text("moved,")
    expect(summary).to_contain_text("B: research@1")
    expect(summary).to_contain_text("A: default@3")
    expect(summary).to_contain_text("of 2,048 tokens")
    page.get_by_role("button", name="Keep only B").click()
    expect(page.locator(".verdict")).to_contain_text("research@1")


def test_judgements_arrive_as_feedback(console: Console) -> None:
    page = console.open(ASKED)
    expect(page.locator(".result").first).to_be_visible()
    shown = final_order(page)
    for place, button in ((0, "Relevant"), (1, "Not relevant"), (2, "Relevant")):
        page.locator(".result").nth(place).get_by_role("button", name=button, exact=True).click()
        expect(page.locator(".toasts")).to_contain_text("Feedback saved")
    expect(page.locator(".result [aria-pressed=true]")).to_have_count(3)  # pressed once it is stored
    stored = httpx.get(f"{console.url}/v1/namespaces/{NAMESPACE}/feedback").json()["feedback"]
    of_these = [one for one in stored if one["query"] == QUESTION]
    assert {ident for one in of_these for ident in one["relevant"]} == {shown[0], shown[2]}
    assert {ident for one in of_these for ident in one["irrelevant"]} == {shown[1]}
    assert all(one["search_id"] for one in of_these)


def test_a_judgement_says_which_memories_were_searched(console: Console) -> None:
    """Without a query log nothing else does, and an evaluation would search all of them."""
    page = console.open(ASKED)
    page.get_by_text("Filters and time").click()
    for field, value in (("Speaker", "Maya"), ("As of", "2025-08-01")):
        with page.expect_response("**/context"):
            page.get_by_label(field).fill(value)
            page.keyboard.press("Enter")
    with page.expect_request("**/feedback") as sent:
        page.get_by_role("button", name="Relevant", exact=True).first.click()
    body = sent.value.post_data_json or {}
    assert (body["filters"], body["as_of"]) == ({"speaker": ["Maya"]}, "2025-08-01T00:00:00Z")


def test_results_are_of_the_question_above_them(console: Console) -> None:
    """Results of the previous question disappear at once, even if this one fails or hangs; then the next one runs."""
    page = console.open(ASKED)

    def answer(route: Route) -> None:
        query = (route.request.post_data_json or {})["query"]
        if query == "refused":
            route.fulfill(status=429, json={"detail": "Too many requests."})
        elif query != "held":  # which gets no answer
            route.continue_()

    page.route("**/context", answer)
    box = page.get_by_role("searchbox")
    for question, said in (("refused", "Too many requests."), ("held", "Searching…")):
        box.fill(question)
        with page.expect_request("**/context"):
            page.keyboard.press("Enter")
        expect(page.locator(".ask-how")).to_contain_text(said)
        expect(page.locator(".result")).to_have_count(0)
        expect(page.get_by_label("Request code")).to_have_count(0)
        expect(box).to_be_focused()
    box.fill(QUESTION)
    page.keyboard.press("Enter")
    expect(page.locator(".result").first).to_be_visible()
    console.faults[:] = [fault for fault in console.faults if "429" not in fault]


def test_no_result_stays_of_settings_that_failed(console: Console) -> None:
    page = console.open(ASKED)
    expect(page.locator(".result").first).to_be_visible()
    page.route("**/context", lambda route: route.fulfill(status=429, json={"detail": "Too many requests."}))
    page.get_by_label("Mode").select_option("bm25")
    expect(page.get_by_role("alert")).to_contain_text("Too many requests.")
    expect(page.locator(".result")).to_have_count(0)
    console.faults[:] = [fault for fault in console.faults if "429" not in fault]


def test_an_answer_is_of_the_settings_beside_it(console: Console) -> None:
    """Also if sides are added and removed during a request."""
    page = console.open(ASKED)
    held: list[Route] = []
    weights = page.locator(".verdict > div").nth(1)

    def only(leg: str) -> Locator:
        return weights.get_by_role("listitem").filter(has_text=re.compile(f"{leg} ?100%"))

    page.route("**/context", lambda route: held.append(route))
    page.get_by_label("Mode").select_option("bm25")
    page.unroute("**/context")
    page.get_by_role("button", name="Compare settings").click()
    expect(only("BM25")).to_be_visible()
    page.get_by_role("button", name="A", exact=True).click()
    expect(only("BM25")).to_be_visible()

    page.route("**/context", lambda route: held.append(route))
    page.get_by_role("button", name="B", exact=True).click()
    page.get_by_label("Mode").select_option("graph")
    page.unroute("**/context")
    page.get_by_role("button", name="Keep only B").click()
    expect(only("Graph")).to_be_visible()


def test_a_name_with_the_mark_between_names_leads_to_the_graph(console: Console) -> None:
    memory = {"id": "lab", "text": "Mina works at R|D 100% Lab.", "entities": [{"name": "R|D 100% Lab"}]}
    url = f"{console.url}/v1/namespaces/marks/memories"
    httpx.post(url, json={"memories": [memory]}, timeout=300).raise_for_status()
    page = console.open(f"ask?q={quote('Who works at R|D 100% Lab?')}", namespace="marks")
    page.locator(".path").first.click()
    expect(page.get_by_text("question →")).to_have_text("question → R|D 100% Lab → lab")
    expect(page.locator(".entity-list")).to_contain_text("R|D 100% Lab")


def test_the_request_can_be_copied_and_run(console: Console) -> None:
    """The Python of the request is valid and asks what the page asked."""
    page = console.open(ASKED)
    expect(page.get_by_label("Request code")).to_be_visible()
    drag(page, "Token budget", 0.0)
    page.get_by_role("button", name="Python").click()
    expect(page.get_by_label("Request code")).to_contain_text("max_tokens=128,")  # a drag passes other values
    code = page.get_by_label("Request code").inner_text()
    told: dict[str, object] = {}
    exec(code.replace("    print(pack.context)", "    told['pack'] = pack.context"), {"told": told})  # noqa: S102
    expect(page.get_by_label("Pack text")).to_have_text(str(told["pack"]))


def test_history_is_kept_and_cleared(console: Console) -> None:
    page = console.open()
    for question in ("Who is Biscuit?", "What is the kettle rota?"):
        page.get_by_role("searchbox").fill(question)
        page.get_by_role("button", name="Ask", exact=True).click()
        expect(page.locator(".results")).to_be_visible()
    page.reload()
    page.get_by_text("History", exact=True).click()
    page.get_by_role("button", name="Who is Biscuit?").click()
    expect(page.get_by_role("searchbox")).to_have_value("Who is Biscuit?")
    page.get_by_text("History", exact=True).click()
    page.get_by_role("button", name="Clear history").click()
    expect(page.get_by_text("History", exact=True)).to_have_count(0)


def test_a_question_under_way_does_not_return_to_a_cleared_history(console: Console) -> None:
    page = console.open(ASKED)
    page.get_by_role("searchbox").fill("Who is Biscuit?")
    page.keyboard.press("Enter")
    history = page.locator("summary", has_text="History")
    expect(history).to_be_visible()
    held: list[Route] = []
    page.route("**/context", lambda route: held.append(route))
    page.get_by_role("searchbox").fill("What is the kettle rota?")
    with page.expect_request("**/context"):
        page.keyboard.press("Enter")
    history.click()
    page.get_by_role("button", name="Clear history").click()
    held[0].continue_()
    expect(page.locator(".result").first).to_be_visible()
    expect(history).to_have_count(0)


def test_history_is_as_high_as_the_button_beside_it(console: Console) -> None:
    page = console.open(ASKED)
    page.get_by_role("searchbox").fill("Who is Biscuit?")
    page.keyboard.press("Enter")
    history, ask = page.locator("summary", has_text="History"), page.get_by_role("button", name="Ask", exact=True)
    expect(history).to_be_visible()
    boxes = [one.bounding_box() for one in (history, ask)]
    assert len({box["height"] for box in boxes if box}) == 1


def test_history_closes_by_escape_and_when_left(console: Console) -> None:
    page = console.open()
    page.get_by_role("searchbox").fill("Who is Biscuit?")
    page.keyboard.press("Enter")
    entry = page.get_by_role("button", name="Who is Biscuit?", exact=True)
    page.get_by_text("History", exact=True).click()
    entry.focus()
    page.keyboard.press("Escape")
    expect(entry).to_be_hidden()
    expect(page.locator("summary").filter(has_text="History")).to_be_focused()
    page.keyboard.press("Enter")
    expect(entry).to_be_visible()
    page.locator(".result").first.click()
    expect(entry).to_be_hidden()


def test_history_has_the_questions_of_all_tabs_that_were_answered(console: Console) -> None:
    """Not a text that is too long, which the server refuses in one sentence."""
    page = console.open()
    other = page.context.new_page()
    other.goto(page.url)
    for tab, question in ((page, "Who is Biscuit?"), (other, "What is the kettle rota?")):
        tab.get_by_role("searchbox").fill(question)
        tab.keyboard.press("Enter")
        expect(tab.locator(".results")).to_be_visible()
    page.get_by_role("searchbox").fill("x " * 4_100)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").get_by_role("paragraph")).to_have_text(
        "query: must be text of 1 to 8,192 characters or null"
    )
    page.get_by_role("link", name="Tune").click()
    expect(page.get_by_role("region", name="Questions and intents").get_by_role("row")).to_have_count(3)
    console.faults[:] = [fault for fault in console.faults if "422" not in fault]


def test_the_words_that_matched_are_shown_in_any_script(console: Console) -> None:
    added = {"memories": [{"id": "mixed", "text": "我妹妹搬到了波尔图, an die alte Straße."}]}
    httpx.post(f"{console.url}/v1/namespaces/scripts/memories", json=added, timeout=60).raise_for_status()
    evidence = console.open("ask?q=STRASSE 波尔图", namespace="scripts").locator(".evidence")
    for word in ("Straße", "波尔", "尔图"):
        expect(evidence).to_contain_text(f"“{word}” (in")


def test_a_word_that_only_begins_like_a_term_of_the_question_is_no_match(console: Console) -> None:
    added = {
        "memories": [
            {"id": "met", "text": "Maya may come.", "speaker": "Gary"},
            {"id": "not", "text": "Maya garaged it."},
        ]
    }
    httpx.post(f"{console.url}/v1/namespaces/stems/memories", json=added, timeout=60).raise_for_status()
    page = console.open("ask?q=May Gary come?", namespace="stems")
    expect(page.locator("[data-memory=met] .evidence")).to_contain_text("“may” (in 1 memory)")
    expect(page.locator(".results")).not_to_contain_text("“Maya”")


def test_a_leg_that_failed_is_told_from_one_that_was_off(console: Console) -> None:
    def answer(route: Route) -> None:
        found = route.fetch().json()
        found["degraded"] = [{"leg": "vector", "reason": "passed its deadline of 2 s"}]
        for leg in ("vector", "graph"):
            del found["explanation"]["legs"][leg]
        for result in found["results"]:
            result["legs"] = {}
        route.fulfill(json=found)

    page = console.open()
    page.route("**/context", answer)
    page.get_by_role("searchbox").fill(QUESTION)
    page.keyboard.press("Enter")
    for leg, said in (("vector", "Did not answer."), ("bm25", "it contributed."), ("graph", "Did not run.")):
        expect(page.locator(f".evidence .leg-{leg}").first).to_contain_text(said)


def test_of_a_long_text_the_match_is_shown(console: Console) -> None:
    text = f"{'The wind came from the west. ' * 500}The lighthouse keeper is called Ottoline. {'It rained. ' * 500}"
    added = {"memories": [{"id": "log", "text": text}]}
    httpx.post(f"{console.url}/v1/namespaces/logbook/memories", json=added, timeout=60).raise_for_status()
    page = console.open("ask?q=Who keeps the lighthouse?", namespace="logbook")
    shown = page.locator(".result-text")
    expect(shown).to_contain_text("Ottoline")
    assert len(shown.inner_text()) < 300


def test_a_question_mark_in_an_address_is_part_of_the_question(console: Console) -> None:
    page = console.open("ask?q=Who is Biscuit? And who is Owen?")
    expect(page.get_by_role("searchbox")).to_have_value("Who is Biscuit? And who is Owen?")


def test_on_a_phone_results_come_before_the_pack(new_console: Callable[..., Console], server: str) -> None:
    """As they do for keyboard users."""
    page = new_console(server, viewport={"width": 375, "height": 812}).open(ASKED)
    results, pack = page.get_by_label("Results").bounding_box(), page.get_by_label("Context pack").bounding_box()
    assert results is not None
    assert pack is not None
    assert results["y"] < pack["y"]


@pytest.mark.parametrize("query", ["'; drop table memory; --", "<img src=x onerror=alert(1)>", "ß" * 2_000])
def test_odd_questions_are_only_questions(console: Console, query: str) -> None:
    page = console.open()
    page.get_by_role("searchbox").fill(query)
    page.keyboard.press("Enter")
    expect(page.locator(".verdict")).to_be_visible()
