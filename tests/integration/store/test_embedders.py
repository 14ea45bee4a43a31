"""The embedder of a namespace: chosen at its creation, used by every leg and write, and reported if missing."""

from __future__ import annotations

import numpy as np
import pytest

from postgres.connection import Connection
from retrieval.api.app import create_app
from retrieval.doctor import examine
from retrieval.embedding import multilingual
from retrieval.engine import Trivet
from retrieval.errors import AllLegsFailed, Conflict, EmbedderMissing, InvalidInput
from retrieval.index import registry, small_namespaces
from retrieval.installation import models_dir
from retrieval.profiles.schema import ModelsInput, ProfileInput
from retrieval.store import namespaces, vectors
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.types.document import DocumentInput
from retrieval.types.memory import MemoryInput, MemoryPatch
from retrieval.types.namespace import NamespaceSettings
from retrieval.types.search import ClassifyRequest, Mode, SearchRequest
from tests.serving import client_of, settings_for

pytest.importorskip(multilingual.PACKAGE)

E5 = NamespaceSettings(embedder="multilingual-e5-small")
MEMORIES = [
    MemoryInput(id="zh", text="我妹妹上个月搬到里斯本去了。"),
    MemoryInput(id="ru", text="Врач прописал отцу новые таблетки от давления."),
    MemoryInput(id="de", text="Der Zahnarzt hat am Donnerstag geschlossen."),
    MemoryInput(id="ja", text="猫は毎朝五時に餌をねだります。"),
]
QUESTIONS = {
    "Where did my sister move to?": "zh",
    "which medicine does dad take": "ru",
    "When can I not see a dentist?": "de",
    "At what time is the cat hungry?": "ja",
}


@pytest.fixture
async def chosen(trivet: Trivet) -> Trivet:
    """With memories in several languages in `e5`, and the same in `mini` by the default embedder."""
    await trivet.put_namespace("e5", E5)
    for name in ("e5", "mini"):
        assert {result.status for result in await trivet.add(name, MEMORIES)} == {"created"}
    return trivet


@pytest.fixture
def uninstalled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multilingual, "PACKAGE", "not_installed_at_all")


async def test_a_query_is_classified_as_a_search_of_its_namespace_reads_it(chosen: Trivet) -> None:
    query = "Где живёт моя сестра?"
    for name in ("e5", "mini"):
        searched = (await chosen.search(name, SearchRequest(query=query))).intent
        assert (await chosen.classify(ClassifyRequest(query=query, namespace=name))).intent == searched
    assert (await chosen.classify(ClassifyRequest(query=query))).intent == searched


async def test_questions_find_what_was_said_in_other_languages(chosen: Trivet) -> None:
    for question, expected in QUESTIONS.items():
        for mode in (Mode.VECTOR, Mode.ADAPTIVE):
            response = await chosen.search("e5", SearchRequest(query=question, mode=mode))
            assert (question, response.results[0].id) == (question, expected)
            assert response.degraded == []


async def test_a_classifier_reads_the_vectors_that_it_was_trained_with(chosen: Trivet) -> None:
    """The shipped one uses the namespace's embedder; any other one the default embedder."""
    reference = await chosen.models.put_model("intent", models_dir() / "intent.onnx")
    await chosen.profiles.put("own", ProfileInput(models=ModelsInput(intent=reference)))
    likely = {"我该给妹妹买什么礼物，有什么推荐吗？": "preference", "Wann hat der Zahnarzt zu?": "fact_lookup"}
    for question, intent in likely.items():
        own = [await chosen.answer(name, SearchRequest(query=question, profile="own@1")) for name in ("e5", "mini")]
        assert own[0].prediction == own[1].prediction
        assert (await chosen.answer("e5", SearchRequest(query=question))).prediction.label == intent


async def test_the_legs_share_of_fragments_is_of_the_namespaces_embedder(chosen: Trivet) -> None:
    shares = [
        (await chosen.answer(name, SearchRequest(query="妹妹住在哪里"))).fragment_share for name in ("e5", "mini")
    ]
    assert shares == [0, 1]


async def test_changed_memories_and_documents_are_embedded_alike(chosen: Trivet, database_url: str, pool: Pool) -> None:
    await chosen.patch("e5", "de", MemoryPatch(text="El dentista cierra los jueves."))
    async with pool.connection() as conn:
        found = await namespaces.find(conn, "e5")
        stored = await vectors.read(conn, found.ns, range(found.next_doc), generation=0)
    [expected] = await chosen.embedders.get("multilingual-e5-small").embed_documents(["El dentista cierra los jueves."])
    assert (stored.context_vectors @ expected).max() == pytest.approx(1, abs=1e-3)
    inputs = await chosen.candidate_inputs(await chosen.answer("e5", SearchRequest(query="dentist")))
    assert inputs is not None
    query = await chosen.embedders.get("multilingual-e5-small").embed_query("dentist")
    assert np.max(inputs.own) == pytest.approx(float((stored.context_vectors @ query).max()), abs=1e-2)


async def test_documents_are_cut_by_the_pieces_of_the_embedder(chosen: Trivet) -> None:
    """The default one reads Russian letter by letter, so that its chunks have a line or two."""
    text = "Ночной поезд отходит в одиннадцать и приходит в Казань рано утром. " * 60
    receipts = [await chosen.documents.put(name, DocumentInput(id="d", text=text)) for name in ("e5", "mini", "new")]
    in_e5, in_mini, in_new = [receipt.chunks for receipt in receipts]
    assert in_e5 * 2 < in_mini == in_new
    assert (await chosen.documents.get("e5", "d")).text == text
    assert (await chosen.documents.put("e5", DocumentInput(id="d", text=text))).status == "unchanged"


async def test_a_namespace_that_is_still_being_read_is_asked_by_its_embedder(
    chosen: Trivet, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for owner, limit in ((small_namespaces, "MOST_ORDINALS"), (registry, "LARGE_FROM"), (registry, "PATIENCE_S")):
        monkeypatch.setattr(owner, limit, 0)
    async with Trivet.open(settings_for(database_url)) as fresh, fresh._pool.connection() as conn, conn.transaction():
        await conn.execute("lock table mention in access exclusive mode")  # so that it is not read before it is asked
        response = await fresh.search("e5", SearchRequest(query="Where did my sister move to?", mode=Mode.VECTOR))
    assert response.results[0].id == "zh"


async def test_the_embedder_stays_once_there_are_memories(chosen: Trivet) -> None:
    with pytest.raises(Conflict, match=r"embedder of namespace 'e5' is 'multilingual-e5-small' and stays so"):
        await chosen.put_namespace("e5", NamespaceSettings())
    with pytest.raises(Conflict, match="new vectors by 'multilingual-e5-small'"):
        await chosen.put_namespace("mini", E5)
    await chosen.put_namespace("empty", NamespaceSettings())
    assert (await chosen.put_namespace("empty", E5)).settings == E5


@pytest.mark.parametrize("change", [E5, NamespaceSettings(language="de")])
async def test_a_write_by_the_settings_before_a_change_starts_over(
    trivet: Trivet, monkeypatch: pytest.MonkeyPatch, change: NamespaceSettings
) -> None:
    """Vectors of two embedders in one namespace could not be compared, nor terms of two languages."""
    allocate, found = namespaces.allocate_docs, list[Namespace]()

    async def late(conn: Connection, namespace: Namespace, docs: int) -> range:
        if not found:
            await trivet.put_namespace("n", change)
        found.append(namespace)
        return await allocate(conn, namespace, docs)

    monkeypatch.setattr(namespaces, "allocate_docs", late)
    assert [result.status for result in await trivet.add("n", [MemoryInput(text="Zwei Segel.")])] == ["created"]
    assert [each.settings for each in found] == [NamespaceSettings(), change]


async def test_an_export_brings_its_embedder_along(chosen: Trivet) -> None:
    lines = b"".join([piece async for piece in chosen.lifecycle.export("e5")]).splitlines()
    assert b'"embedder":"multilingual-e5-small"' in lines[0]
    await chosen.prepare_import("copy", E5)
    assert (await chosen.get_namespace("copy")).settings.embedder == "multilingual-e5-small"


async def test_an_export_is_embedded_as_the_namespace_that_takes_it(chosen: Trivet) -> None:
    await chosen.put_namespace("moved", E5)
    for name in ("moved", "e5"):  # the one is empty, the other has memories
        await chosen.prepare_import(name, NamespaceSettings(language="de"))
    assert (await chosen.get_namespace("moved")).settings == NamespaceSettings(language="de", embedder=E5.embedder)
    assert (await chosen.get_namespace("e5")).settings == E5


async def test_where_it_is_not_installed(chosen: Trivet, database_url: str, uninstalled: None) -> None:
    """Writes are refused, searches use the other legs, and the health checks name it."""
    with pytest.raises(InvalidInput, match="not installed: pip install"):
        await chosen.put_namespace("other", E5)
    async with Trivet.open(settings_for(database_url)) as without:
        with pytest.raises(EmbedderMissing, match="not installed: pip install"):
            await without.add("e5", [MemoryInput(id="new", text="Not stored.")])
        with pytest.raises(EmbedderMissing, match="not installed: pip install"):
            await without.documents.put("e5", DocumentInput(id="new", text="Not stored."))
        response = await without.search("e5", SearchRequest(query="Der Zahnarzt"))
        assert response.results[0].id == "de"
        [degraded] = response.degraded
        assert degraded.leg == "vector"
        assert "not installed: pip install" in degraded.reason
        with pytest.raises(AllLegsFailed, match="not installed"):
            await without.search("e5", SearchRequest(query="dentist", mode=Mode.VECTOR))
        assert (await without.search("mini", SearchRequest(query="Zahnarzt"))).degraded == []
        assert (await without.readiness())["models"] is False
        assert (await without.get_namespace("e5")).memories == len(MEMORIES)
    [finding] = [each for each in await examine(settings_for(database_url)) if each.name.startswith("embedder")]
    assert (finding.name, finding.ok) == ("embedder multilingual-e5-small", False)
    assert finding.detail.startswith("of e5: ")


async def test_where_it_is_installed(chosen: Trivet, database_url: str) -> None:
    assert (await chosen.readiness())["models"] is True
    [finding] = [each for each in await examine(settings_for(database_url)) if each.name.startswith("embedder")]
    assert (finding.ok, finding.detail) == (True, "of e5: available")


async def test_over_http(chosen: Trivet, database_url: str, uninstalled: None) -> None:
    async with client_of(create_app(settings_for(database_url))) as client:
        path = "/v1/namespaces/e5"
        problem = (await client.post(f"{path}/memories", json={"memories": [{"id": "x", "text": "x"}]})).json()
        assert (problem["status"], "pip install 'trivet[multilingual]'" in problem["detail"]) == (503, True)
        problem = (await client.put("/v1/namespaces/new", json={"embedder": "multilingual-e5-small"})).json()
        assert (problem["status"], problem["errors"][0]["loc"]) == (422, ["embedder"])
        assert (await client.put(path, json={"embedder": "all-MiniLM-L6-v2"})).status_code == 409
        assert (await client.put(path, json={})).json()["settings"]["embedder"] == "multilingual-e5-small"
        response = await client.post(f"{path}/search", json={"query": "Der Zahnarzt"})
        assert (response.status_code, response.json()["results"][0]["id"]) == (200, "de")
        assert (await client.get("/health/ready")).status_code == 503
