"""The view Tune: ways to rank are evaluated by judgements."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Locator, Route, expect

from retrieval.cli.demo import sample
from retrieval.cli.tune import command as tune
from tests.browser.conftest import NAMESPACE, Console
from tests.serving import on_a_port, settings_for

JUDGED = 12


@pytest.fixture
def judged(server: str) -> str:
    """The server, with questions of the sample and their answers, as far as it has them."""
    path = f"{server}/v1/namespaces/{NAMESPACE}"
    stored = {row["id"] for row in httpx.get(f"{path}/memories", params={"limit": 200}).json()["memories"]}
    answered = [(query.text, [one for one in query.relevant if one in stored]) for query in sample().queries]
    for text, relevant in [pair for pair in answered if pair[1]][:JUDGED]:
        body = {"id": text[:100], "query": text, "shown": relevant, "relevant": relevant}
        httpx.post(f"{path}/feedback", json=body).raise_for_status()
    return server


def systems(console: Console) -> Locator:
    return console.page.get_by_role("region", name="Systems").get_by_role("row")


def test_the_ways_to_rank_are_compared_by_keyboard(console: Console, judged: str) -> None:
    page = console.open("tune")
    page.get_by_label("Compare with profile (optional)").focus()
    page.keyboard.type("research")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("each run on every system")).to_be_visible()
    expect(systems(console)).to_have_count(1 + 8 + 1)  # the head, the systems and the other profile
    expect(systems(console).filter(has_text="BM25")).to_contain_text("not different")
    expect(systems(console).filter(has_text="Profile research")).to_contain_text("not different")

    page.get_by_text("Question by question").focus()
    page.keyboard.press("Enter")
    page.get_by_label("against").focus()
    page.keyboard.type("Vec")  # as a list is searched
    questions = page.get_by_role("region", name="Questions").get_by_role("row")
    expect(questions.first).to_contain_text("Vector")
    worst = questions.nth(1).get_by_role("link")
    asked = worst.inner_text()
    worst.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("searchbox")).to_have_value(asked)


def test_the_command_that_learns_from_judgements_is_whole(console: Console) -> None:
    _, name, *arguments = shlex.split(console.open("tune").get_by_text("--from-feedback").inner_text())
    assert tune.make_context(name, arguments).params["namespace"] == NAMESPACE


def test_all_judgements_are_listed(console: Console) -> None:
    """In a list that scrolls, above the evaluation."""
    path = f"{console.url}/v1/namespaces/judged"
    httpx.post(f"{path}/memories", json={"memories": [{"id": "m", "text": "The kettle is blue."}]}, timeout=300)
    for i in range(60):
        body = {"query": f"Question {i}?", "shown": ["m"], "relevant": ["m"], "clicked": ["m"], "intent": "fact_lookup"}
        httpx.post(f"{path}/feedback", json=body).raise_for_status()
    page = console.open("tune", namespace="judged")
    judgements = page.get_by_role("region", name="Judgements")
    expect(judgements.get_by_role("row")).to_have_count(1 + 60)
    counts = judgements.get_by_role("row").nth(1).locator("td.number").all_inner_texts()
    assert counts == ["1", "0"], "one memory, though it is also clicked"
    expect(page.get_by_role("heading", name="Evaluation")).to_be_in_viewport()
    judgements.get_by_role("link", name="Question 0?").focus()
    expect(judgements.get_by_role("link", name="Question 0?")).to_be_in_viewport()
    assert console.violations() == []


def test_the_axes_of_the_reliability_are_labelled(console: Console) -> None:
    """And a point says the mean of what was predicted for its questions, and the page which questions they are."""
    path = f"{console.url}/v1/namespaces/read"
    httpx.post(f"{path}/memories", json={"memories": [{"id": "m", "text": "The kettle is blue."}]}, timeout=300)
    body = {"query": "What colour is it?", "shown": ["m"], "relevant": ["m"]}
    with httpx.Client() as client:
        for stated in (*[None] * 100, "fact_lookup"):  # the latest is on a second page
            client.post(f"{path}/feedback", json=body | {"intent": stated}).raise_for_status()
    page = console.open("tune", namespace="read")
    expect(page.get_by_text("in the oldest 1,000 judgements")).to_be_visible()
    plot = page.get_by_role("img", name="Reliability of the intent classifier")
    for label in ("Predicted probability", "Accuracy"):
        expect(plot.get_by_text(label)).to_be_visible()
    asked = {"query": body["query"], "namespace": "read"}
    intent = httpx.post(f"{console.url}/v1/classify", json=asked).json()["intent"]
    predicted = max(intent["probabilities"].values())
    assert plot.locator("title").text_content() == f"Predicted {predicted:.0%}, correct 100% of 1"


def test_the_version_shown_is_marked(console: Console) -> None:
    page = console.open("tune")
    expect(page.get_by_role("button", name="Show")).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize(
    ("live", "before"),
    [
        ([(1, "shipped")], None),
        ([(2, "promote"), (1, "shipped")], 1),
        ([(2, "rollback"), (3, "promote"), (2, "promote"), (1, "shipped")], 1),
        ([(4, "promote"), (2, "rollback"), (3, "promote"), (2, "promote"), (1, "shipped")], 2),
        ([(1, "rollback"), (2, "promote"), (1, "shipped")], None),
    ],
)
def test_a_rollback_leads_past_what_was_rolled_back(
    console: Console, live: list[tuple[int, str]], before: int | None
) -> None:
    history = [{"version": version, "by": by, "at": "2025-01-01T00:00:00Z"} for version, by in live]
    told = httpx.get(f"{console.url}/v1/profiles/default").json() | {"history": history}
    console.page.route("**/v1/profiles/default", lambda route: route.fulfill(json=told))
    page = console.open("tune")
    expect(page.get_by_role("button", name="Show")).to_be_visible()
    expect(page.get_by_text("to default@")).to_have_text([f"to default@{before}"] if before else [])


def test_an_error_goes_with_the_version_that_it_is_about(
    new_console: Callable[..., Console], database_url: str
) -> None:
    """Once another one is loading; in the meantime the former stays."""
    with on_a_port(settings_for(database_url)) as address:
        httpx.put(f"{address}/v1/namespaces/{NAMESPACE}", json={}).raise_for_status()
        httpx.put(f"{address}/v1/profiles/default", json={"shrink": 0.5}).raise_for_status()
        console = new_console(address)
        page, held = console.open("tune"), list[Route]()
        expect(page.get_by_role("button", name="Promote")).to_be_visible()
        page.route("**/promote", lambda route: route.continue_(post_data={"version": 3}))  # it needs no gate's report
        page.route("**/profiles/default?*", lambda route: route.abort())
        page.route("**/profiles/default", lambda route: route.abort())
        page.get_by_role("button", name="Promote").click()
        error = page.get_by_role("alert").filter(has_text="from an earlier answer")
        expect(error).to_be_visible()
        page.route("**/profiles/default?*", lambda route: held.append(route))
        with page.expect_request("**/profiles/default?*"):
            page.get_by_role("button", name="Show").first.click()
        expect(error).to_have_count(0)
        held[0].continue_()
        expect(page.get_by_role("button", name="Show").first).to_have_attribute("aria-pressed", "true")
        page.close()
    console.faults[:] = [fault for fault in console.faults if "ERR_FAILED" not in fault]


def test_too_few_judgements_are_said(console: Console) -> None:
    url = f"{console.url}/v1/namespaces/few/memories"
    httpx.post(url, json={"memories": [{"text": "The kettle is blue."}]}, timeout=300).raise_for_status()
    page = console.open("tune", namespace="few")
    page.get_by_role("button", name="Evaluate").click()
    expect(page.get_by_role("alert")).to_contain_text("an evaluation needs 10 queries")
    console.faults[:] = [fault for fault in console.faults if "422" not in fault]


def test_the_results_to_judge_are_of_the_question_above_them(console: Console) -> None:
    page = console.open("tune")
    box = page.get_by_label("Question to judge")
    box.fill("Who is Biscuit?")
    page.keyboard.press("Enter")
    results = page.get_by_role("list", name="Results for: Who is Biscuit?")
    expect(results.get_by_role("listitem").first).to_be_visible()
    expect(box).to_be_focused()
    held: list[Route] = []
    page.route("**/search", lambda route: held.append(route))
    box.fill("What is the kettle rota?")
    with page.expect_request("**/search"):
        page.keyboard.press("Enter")
    expect(page.get_by_text("Searching…")).to_be_visible()
    expect(page.get_by_role("button", name="Relevant", exact=True)).to_have_count(0)
    held[0].continue_()
    expect(page.get_by_role("list", name="Results for: What is the kettle rota?")).to_be_visible()


def test_a_judgement_joins_the_list_without_reading_it_again(console: Console) -> None:
    path = f"{console.url}/v1/namespaces/joined"
    httpx.post(f"{path}/memories", json={"memories": [{"id": "m", "text": "The kettle is blue."}]}, timeout=300)
    page = console.open("tune", namespace="joined")
    expect(page.get_by_text("No judgements yet.")).to_be_visible()
    expect(page.get_by_role("button", name="Show")).to_be_visible()  # the view has read all it needs
    page.get_by_label("Question to judge").fill("What colour is the kettle?")
    page.keyboard.press("Enter")
    read: list[str] = []
    page.on("request", lambda request: read.append(request.url) if request.method == "GET" else None)
    page.route("**/feedback", lambda route: route.abort())
    page.get_by_role("button", name="Relevant", exact=True).click()
    expect(page.locator(".toasts")).to_contain_text("Feedback not saved")
    expect(page.get_by_text("No judgements yet.")).to_be_visible()
    page.unroute("**/feedback")
    for n, button in enumerate(("Relevant", "Not relevant"), start=1):
        page.get_by_role("button", name=button, exact=True).click()
        expect(page.get_by_text(f"{n} judgement")).to_be_visible()
    newest, oldest = (page.get_by_role("region", name="Judgements").get_by_role("row").nth(i) for i in (1, 2))
    expect(newest.get_by_role("cell")).to_contain_text(["What colour is the kettle?", "0", "1", ""])
    expect(oldest.get_by_role("cell")).to_contain_text(["What colour is the kettle?", "1", "0", ""])
    assert read == []
    console.faults[:] = [fault for fault in console.faults if "ERR_FAILED" not in fault]


def test_a_judgement_made_while_the_list_is_read_is_in_it_once(console: Console) -> None:
    """Whether it was stored before or after the server read the list."""
    path = f"{console.url}/v1/namespaces/meanwhile"
    httpx.post(f"{path}/memories", json={"memories": [{"id": "m", "text": "The kettle is blue."}]}, timeout=300)
    page, held = console.page, list[Route]()
    page.route("**/feedback?*", lambda route: held.append(route))
    page.goto(f"{console.url}/#/meanwhile/tune")
    page.get_by_label("Question to judge").fill("What colour is the kettle?")
    page.keyboard.press("Enter")
    for name in ("Relevant", "Not relevant"):
        button = page.get_by_role("button", name=name, exact=True)
        button.click()
        expect(button).to_have_attribute("aria-pressed", "true")
        if name == "Relevant":
            read = [(route, route.fetch()) for route in held]
    for route, answer in read:
        route.fulfill(response=answer)
    expect(page.get_by_text("2 judgements", exact=True)).to_be_visible()


def test_a_whole_list_is_not_called_the_oldest(console: Console) -> None:
    path = f"{console.url}/v1/namespaces/whole"
    httpx.post(f"{path}/memories", json={"memories": [{"id": "m", "text": "The kettle is blue."}]}, timeout=300)
    one = {"at": "2025-01-01", "query": "Why?", "relevant": ["m"], "irrelevant": [], "clicked": [], "ratings": {}}
    stored = {"feedback": [{**one, "id": str(i)} for i in range(999)], "next_cursor": None}
    console.page.route("**/feedback?*", lambda route: route.fulfill(json=stored))
    page = console.open("tune", namespace="whole")
    expect(page.get_by_text("999 judgements", exact=True)).to_be_visible()
    page.get_by_label("Question to judge").fill("What colour is the kettle?")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Relevant", exact=True).click()
    expect(page.get_by_text("1,000 judgements", exact=True)).to_be_visible()


def test_intents_are_those_that_the_namespace_gets(console: Console) -> None:
    """Its profile may have a classifier of its own."""
    page = console.open()
    page.get_by_role("searchbox").fill("Who is Biscuit?")
    page.keyboard.press("Enter")
    expect(page.locator(".results")).to_be_visible()
    with page.expect_request("**/v1/classify") as classified:
        page.get_by_role("link", name="Tune").click()
    assert classified.value.post_data_json == {"query": "Who is Biscuit?", "namespace": NAMESPACE}


@pytest.mark.parametrize(("width", "colours"), [(1440, "light"), (375, "dark")])
def test_an_evaluation_is_accessible(
    new_console: Callable[..., Console], judged: str, colours: str, width: int
) -> None:
    size = {"width": width, "height": 812}
    console = new_console(judged, viewport=size, color_scheme=colours, reduced_motion="reduce")
    page = console.open("tune")
    page.get_by_role("button", name="Evaluate").click()
    page.get_by_text("Question by question").click()
    expect(page.get_by_role("region", name="Questions")).to_be_visible()
    assert console.violations() == []
    assert not console.is_too_wide()
