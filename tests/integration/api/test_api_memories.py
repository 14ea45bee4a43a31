"""Namespaces and memories over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import httpx
import pytest

from tests.serving import problem_of

NAMESPACE = "/v1/namespaces/caroline"
MEMORIES = f"{NAMESPACE}/memories"

SUPPORT = {
    "id": "m1",
    "text": "Caroline: I went to the support group yesterday.",
    "kind": "message",
    "title": None,
    "speaker": "Caroline",
    "session_id": "s1",
    "position": 3,
    "document_id": None,
    "created_at": "2023-05-08T13:56:00Z",
    "expires_at": None,
    "tags": ["chat"],
    "metadata": {"channel": "web", "deep": {"list": [1, 2.5, None, "ü"]}},
    "entities": [{"name": "Caroline", "type": "person", "aliases": ["Caro"]}],
    "relations": [{"source": "Caroline", "type": "attends", "target": "support group"}],
    "supersedes": None,
}


async def _add(client: httpx.AsyncClient, *memories: Mapping[str, object]) -> list[dict[str, object]]:
    answer = await client.post(MEMORIES, json={"memories": memories})
    assert answer.status_code == 201, answer.text
    results: list[dict[str, object]] = answer.json()["results"]
    return results


async def test_what_is_added_can_be_read(client: httpx.AsyncClient) -> None:
    """Every field comes back as sent, times with a zone."""
    assert await _add(client, SUPPORT) == [{"id": "m1", "status": "created", "error": None}]
    answer = await client.get(f"{MEMORIES}/m1")
    assert answer.status_code == 200
    assert answer.json() == {**SUPPORT, "superseded_by": []}


async def test_statuses_of_adding(client: httpx.AsyncClient) -> None:
    """Created, unchanged, updated; an id left out is made up."""
    await _add(client, SUPPORT)
    again, changed, new = await _add(client, SUPPORT, {"id": "m2", "text": "x"}, {"text": "no id"})
    assert [again["status"], changed["status"], new["status"]] == ["unchanged", "created", "created"]
    assert isinstance(new["id"], str)
    assert len(new["id"]) == 36
    assert (await _add(client, {**SUPPORT, "text": "Changed."}))[0]["status"] == "updated"


async def test_ids_of_any_characters(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """Percent-encoded, each id is one segment of the path; the names of neighbouring routes are ids too."""
    ids = ["a/b", "/", "//x//", "a b", "ü/漢字", "100%", "%2F", "?q=1#f", "bulk", "delete", "update",
           "a\nb", "x" * 256, "😀"]  # fmt: skip
    await _add(client, *({"id": memory_id, "text": f"The memory {number}."} for number, memory_id in enumerate(ids)))
    for number, memory_id in enumerate(ids):
        with subtests.test(id=memory_id):
            url = f"{MEMORIES}/{quote(memory_id, safe='')}"
            assert (await client.get(url)).json()["id"] == memory_id
            history = (await client.get(f"{url}/history")).json()
            assert [each["id"] for each in history["memories"]] == [memory_id]
            changed = await client.patch(url, json={"text": f"Changed {number}."})
            assert changed.status_code == 200, changed.text
            deleted = await client.delete(url)
            assert (deleted.status_code, deleted.content) == (204, b"")
            problem_of(await client.get(url), 404)
    assert (await client.get(MEMORIES)).json() == {"memories": [], "next_cursor": None}


async def test_patch_changes_what_is_named(client: httpx.AsyncClient) -> None:
    """A field left out stays, null clears, a bad field is a 422 and changes nothing."""
    await _add(client, SUPPORT)
    patched = await client.patch(f"{MEMORIES}/m1", json={"speaker": None, "tags": ["new"]})
    assert patched.json() == {**SUPPORT, "speaker": None, "tags": ["new"], "superseded_by": []}
    for bad in ({"text": None}, {"text": ""}, {"id": "m9"}, {"tags": "new"}, {"supersedes": "m1"}):
        problem_of(await client.patch(f"{MEMORIES}/m1", json=bad), 422)
    assert (await client.get(f"{MEMORIES}/m1")).json() == patched.json()
    problem_of(await client.patch(f"{MEMORIES}/m9", json={"tags": []}), 404)


async def test_no_change_ends_a_memory_before_it_begins(client: httpx.AsyncClient) -> None:
    """Whichever of the two times is changed; nothing is changed then. It may end as it begins."""
    await _add(client, SUPPORT, {**SUPPORT, "id": "m2", "created_at": "2030-01-01T00:00:00Z"})
    before = (await client.get(MEMORIES)).json()
    early = {"expires_at": "2029-12-31T00:00:00Z"}
    for answer in (
        await client.patch(f"{MEMORIES}/m2", json=early),
        await client.patch(f"{MEMORIES}/m1", json={**early, "created_at": "2030-01-01T00:00:00Z"}),
        await client.post(f"{MEMORIES}/update", json={"ids": ["m1", "m2"], "set": early}),
    ):
        assert problem_of(answer, 422)["errors"] == [{"loc": ["expires_at"], "msg": "must not be before `created_at`"}]
    assert (await client.get(MEMORIES)).json() == before
    assert (await client.patch(f"{MEMORIES}/m2", json={"expires_at": "2030-01-01T00:00:00Z"})).status_code == 200
    problem_of(await client.patch(f"{MEMORIES}/m2", json={"created_at": "2030-01-02T00:00:00Z"}), 422)


async def test_listing_in_pages(client: httpx.AsyncClient) -> None:
    """The cursor leads through all memories, each once, in the order of insertion."""
    await _add(client, *({"id": f"m{number:02}", "text": f"Number {number}."} for number in range(25)))
    seen: list[str] = []
    cursor = None
    while True:
        page = (await client.get(MEMORIES, params={"limit": 7, **({"cursor": cursor} if cursor else {})})).json()
        seen += [memory["id"] for memory in page["memories"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [f"m{number:02}" for number in range(25)]


async def test_listing_with_filters(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """Filters as one JSON document, as plain parameters, or both."""
    await _add(
        client,
        SUPPORT,
        {"id": "m2", "text": "Two.", "kind": "chunk", "tags": ["a", "b"], "created_at": "2024-01-01T00:00:00+02:00"},
        {"id": "m3", "text": "Three.", "kind": "message", "speaker": "Melanie", "tags": ["a"], "session_id": "s2"},
    )
    for query, expected in (
        ("kind=chunk", ["m2"]),
        ("kind=chunk&kind=message", ["m1", "m2", "m3"]),
        ("speaker=Melanie&speaker=Caroline", ["m1", "m3"]),
        ("session_id=s1", ["m1"]),
        ("tags_all=a&tags_all=b", ["m2"]),
        ("tags_any=b&tags_any=chat", ["m1", "m2"]),
        ("created_before=2023-12-31T22:00:00Z", ["m1"]),
        ("created_before=2023-12-31T22:00:01Z", ["m1", "m2"]),
        ('filters={"metadata": {"channel": "web"}}', ["m1"]),
        ('kind=message&filters={"tags_all": ["a"]}', ["m3"]),
        ("kind=memory", []),
    ):
        with subtests.test(query=query):
            answer = await client.get(f"{MEMORIES}?{query}")
            assert [memory["id"] for memory in answer.json()["memories"]] == expected


async def test_deleting_by_filter(client: httpx.AsyncClient) -> None:
    """Memories that match the filters are deleted; empty filters are refused."""
    await _add(client, SUPPORT, {"id": "m2", "text": "Two.", "tags": ["a"]}, {"id": "m3", "text": "Three."})
    empty: list[dict[str, object]] = [{"filters": {}}, {}, {"filters": {"tags_all": []}}]
    for body in empty:
        problem_of(await client.post(f"{MEMORIES}/delete", json=body), 422)
    answer = await client.post(f"{MEMORIES}/delete", json={"filters": {"tags_any": ["a", "chat"]}})
    assert answer.json() == {"deleted": 2}
    assert [memory["id"] for memory in (await client.get(MEMORIES)).json()["memories"]] == ["m3"]


async def test_namespaces(client: httpx.AsyncClient) -> None:
    """Create with settings, count, list, delete with a receipt; nothing is left."""
    made = await client.put(NAMESPACE, json={"language": "english"})
    assert made.status_code == 200, made.text
    assert made.json()["memories"] == 0
    await _add(client, SUPPORT, {"id": "m2", "text": "Two."})
    found = (await client.get(NAMESPACE)).json()
    assert (found["name"], found["memories"], found["settings"]) == ("caroline", 2, made.json()["settings"])
    assert [one["name"] for one in (await client.get("/v1/namespaces")).json()["namespaces"]] == ["caroline"]
    problem_of(await client.put(NAMESPACE, json={"language": "german"}), 409)
    problem_of(await client.put(NAMESPACE, json={"language": "klingon"}), 422)
    receipt = await client.delete(NAMESPACE, params={"confirm": "caroline"})
    assert receipt.json()["namespace"] == "caroline"
    assert receipt.json()["deleted"]["memories"] == 2
    again = await client.delete(NAMESPACE, params={"confirm": "caroline"})
    for answer in (await client.get(NAMESPACE), again, await client.get(MEMORIES)):
        problem_of(answer, 404)


async def test_a_namespace_is_deleted_only_when_that_is_confirmed(client: httpx.AsyncClient) -> None:
    """The client turns the path of the memory `..` into the namespace's, and its requests change nothing."""
    await _add(client, SUPPORT)
    tidied = client.build_request("DELETE", f"{MEMORIES}/..")
    assert tidied.url.path == NAMESPACE
    for url in (tidied.url, NAMESPACE, f"{NAMESPACE}?confirm=", f"{NAMESPACE}?confirm=melanie", f"{NAMESPACE}?confirm"):
        problem = problem_of(await client.delete(url), 422)
        assert str(problem["detail"]).startswith("confirm: ")
        assert "?confirm=caroline" in str(problem["detail"])
    assert (await client.get(f"{MEMORIES}/m1")).status_code == 200


async def test_nothing_crosses_namespaces(client: httpx.AsyncClient) -> None:
    """The same id in two namespaces is two memories."""
    await _add(client, SUPPORT)
    other = "/v1/namespaces/melanie/memories"
    assert (await client.post(other, json={"memories": [{"id": "m1", "text": "Mine."}]})).status_code == 201
    assert (await client.delete(f"{other}/m1")).status_code == 204
    assert (await client.get(f"{MEMORIES}/m1")).json()["text"] == SUPPORT["text"]


async def test_many_memories_are_changed_at_once(client: httpx.AsyncClient) -> None:
    """By ids or filters, in all legs; unchanged memories are not counted as updated."""
    texts = {"m1": "The kettle is copper.", "m2": "The door is green.", "m3": "The roof leaks."}
    await _add(client, *({"id": id_, "text": text, "tags": ["house"]} for id_, text in texts.items()))
    by_ids = await client.post(f"{MEMORIES}/update", json={"ids": ["m1", "m9"], "set": {"speaker": "Caroline"}})
    assert by_ids.json() == {"matched": 1, "updated": 1}
    change = {"filters": {"tags_all": ["house"]}, "set": {"speaker": "Caroline", "tags": ["home"]}}
    assert (await client.post(f"{MEMORIES}/update", json=change)).json() == {"matched": 3, "updated": 3}
    assert (await client.post(f"{MEMORIES}/update", json=change)).json() == {"matched": 0, "updated": 0}
    again = {"filters": {"tags_all": ["home"]}, "set": {"tags": ["home"]}}
    assert (await client.post(f"{MEMORIES}/update", json=again)).json() == {"matched": 3, "updated": 0}
    search = {"query": "What did Caroline say of the roof?", "filters": {"speaker": ["Caroline"], "tags_any": ["home"]}}
    found = (await client.post(f"{NAMESPACE}/search", json=search)).json()["results"]
    assert (found[0]["id"], len(found)) == ("m3", 3)


async def test_a_change_of_many_says_which_and_is_valid(client: httpx.AsyncClient) -> None:
    await _add(client, SUPPORT)
    both = {"ids": ["m1"], "filters": {"kind": ["message"]}, "set": {"tags": []}}
    problem_of(await client.post(f"{MEMORIES}/update", json={"set": {"tags": []}}), 422)
    problem_of(await client.post(f"{MEMORIES}/update", json=both), 422)
    for change in ({"text": "x"}, {"session_id": "\x1fd"}, {"kind": "other"}):
        problem_of(await client.post(f"{MEMORIES}/update", json={"ids": ["m1"], "set": change}), 422)
    problem_of(await client.post("/v1/namespaces/nobody/memories/update", json={"ids": ["m1"], "set": {}}), 404)
    assert (await client.get(f"{MEMORIES}/m1")).json() == {**SUPPORT, "superseded_by": []}


async def test_what_may_be_superseded_is_told_only_where_asked_for(client: httpx.AsyncClient) -> None:
    memories = [{"id": "m1", "text": "The kettle is copper."}]
    answer = await client.post(f"{MEMORIES}?may_supersede=true", json={"memories": memories})
    assert answer.json()["results"] == [{"id": "m1", "status": "created", "error": None, "may_supersede": []}]
    many = [{"text": "note"}] * 101
    refused = await client.post(f"{MEMORIES}?may_supersede=true", json={"memories": many})
    problem_of(refused, 422)
    assert refused.json()["errors"][0]["loc"] == ["may_supersede"]
    assert (await client.post(f"{MEMORIES}?may_supersede=false", json={"memories": many})).status_code == 201
