"""Documents are put, found, read, listed and deleted as a whole."""

from __future__ import annotations

import asyncio
import base64
import random

import numpy as np
import psycopg
import pytest
from pgvector.psycopg import register_vector

from retrieval.documents import extraction
from retrieval.documents.reading import Reading
from retrieval.documents.service import MOST_READERS
from retrieval.engine import Trivet
from retrieval.errors import Conflict, InvalidInput, NotFound
from retrieval.types.document import DocumentInput
from retrieval.types.memory import MemoryInput, MemoryPatch
from retrieval.types.search import Filters, Mode, SearchRequest
from tests.office import workbook
from tests.processes import PATIENCE_S
from tests.turns import HALF_PRECISION, CountingEmbedder, own_vector

HANDBOOK = "# Handbook\n\nFor everyone.\n\n" + "".join(
    f"## Chapter {number}\n\n{'The kettle of this chapter is made of copper and whistles in the morning. ' * 14}\n\n"
    for number in range(6)
)
WORDS = [
    "garden",
    "river",
    "copper",
    "window",
    "letter",
    "engine",
    "summer",
    "bottle",
    "market",
    "painter",
    "village",
    "thunder",
    "ladder",
    "velvet",
    "harbour",
    "needle",
    "orchard",
    "candle",
    "timber",
    "saddle",
    "meadow",
    "lantern",
    "basket",
    "whistle",
    "pepper",
    "marble",
    "feather",
    "anchor",
    "blanket",
]


def long_text(pages: int, rng: random.Random) -> list[str]:
    """Pages of sentences of unrelated words, some 300 words each."""
    return [
        " ".join(f"The {' '.join(rng.choices(WORDS, k=8))} of the {rng.choice(WORDS)}." for _ in range(26)) + "\n\n"
        for _ in range(pages)
    ]


async def memories_of(trivet: Trivet, namespace: str = "n") -> list[str]:
    page = await trivet.list(namespace, Filters(), cursor=None, limit=1_000)
    return [memory.id for memory in page.memories]


async def test_a_text_is_not_decoded_again_by_the_encoding_that_it_names(trivet: Trivet) -> None:
    """As a page converted by another program still declares its old one."""
    page = '<html><head><meta charset="iso-8859-1"></head><body><p>Schlüssel</p></body></html>'
    await trivet.documents.put("n", DocumentInput(id="page", text=page))
    await trivet.documents.put("n", DocumentInput(id="note", text="Wölken", media_type="text/plain; charset=latin-1"))
    assert (await trivet.documents.get("n", "page")).text == "Schlüssel"
    assert (await trivet.documents.get("n", "note")).text == "Wölken"


async def test_a_document_is_its_chunks(trivet: Trivet) -> None:
    receipt = await trivet.documents.put(
        "n", DocumentInput(id="h", text=HANDBOOK, metadata={"edition": 3}, tags=["hr"])
    )
    assert (receipt.document_id, receipt.status) == ("h", "created")
    document = await trivet.documents.get("n", "h")
    assert document.text == HANDBOOK
    assert (document.title, document.media_type, document.metadata, document.tags) == (
        "Handbook", "text/markdown", {"edition": 3}, ["hr"],
    )  # fmt: skip
    assert [chunk.position for chunk in document.chunks] == list(range(receipt.chunks))
    for chunk in document.chunks:
        memory = await trivet.get("n", chunk.id)
        assert memory.text == HANDBOOK[chunk.start : chunk.end]
        assert (memory.kind, memory.document_id, memory.position) == ("chunk", "h", chunk.position)
        assert memory.title == " › ".join(chunk.headings)
        assert (memory.metadata["edition"], memory.metadata["document"]["headings"]) == (3, chunk.headings)
    assert document.chunks[-1].headings == ["Handbook", "Chapter 5"]


async def test_a_document_tells_which_of_its_chunks_are_superseded(trivet: Trivet) -> None:
    """They are in its text, but no search finds them."""
    await trivet.documents.put("n", DocumentInput(id="h", text=HANDBOOK))
    await trivet.add("n", [MemoryInput(id="m", text="Chapter 2 is void.", supersedes="h#2")])
    document = await trivet.documents.get("n", "h")
    assert document.text == HANDBOOK
    assert {chunk.id: chunk.superseded_by for chunk in document.chunks if chunk.superseded_by} == {"h#2": ["m"]}


async def test_the_same_content_writes_nothing(trivet: Trivet) -> None:
    document = DocumentInput(id="h", text=HANDBOOK)
    await trivet.documents.put("n", document)
    before = await memories_of(trivet)
    assert (await trivet.documents.put("n", document)).status == "unchanged"
    assert await memories_of(trivet) == before  # in the order in which they were inserted


async def test_a_changed_document_replaces_its_chunks(trivet: Trivet) -> None:
    """Removed parts are no longer found; unchanged parts are not rewritten."""
    await trivet.documents.put("n", DocumentInput(id="h", text=HANDBOOK))
    await trivet.documents.put("n", DocumentInput(id="other", text=HANDBOOK))
    before = await trivet.documents.get("n", "h")
    shorter = HANDBOOK[: before.chunks[3].start] + "## Zeppelins\n\nEvery zeppelin is inflated on Tuesday.\n"
    receipt = await trivet.documents.put("n", DocumentInput(id="h", text=shorter))
    after = await trivet.documents.get("n", "h")
    assert (receipt.status, receipt.chunks, after.text) == ("updated", len(after.chunks), shorter)
    assert after.chunks[:2] == before.chunks[:2]
    assert len(await memories_of(trivet)) == len(after.chunks) + len(before.chunks)
    for mode in (Mode.VECTOR, Mode.BM25, Mode.ADAPTIVE):
        answer = await trivet.search("n", SearchRequest(query="When is the zeppelin inflated?", mode=mode, top_k=3))
        assert answer.results[0].id == after.chunks[-1].id
    filters = Filters(document_id=["h"])
    answer = await trivet.search("n", SearchRequest(query="chapter kettle", filters=filters, top_k=50))
    assert {result.id for result in answer.results} <= {chunk.id for chunk in after.chunks}


async def test_an_edit_embeds_what_it_changed(trivet: Trivet, database_url: str) -> None:
    """A new first paragraph changes the ids of all later chunks, but their texts already have vectors."""
    counting = CountingEmbedder()
    trivet.embedders.default._inner.embed_documents = counting.embed_documents  # type: ignore[method-assign]
    pages = long_text(6, random.Random(7))
    await trivet.documents.put("n", DocumentInput(id="book", text="".join(pages)))
    chunks = len(counting.texts)
    counting.texts.clear()
    edited = "A foreword.\n\n" + "".join(pages)
    for document in (DocumentInput(id="book", text=edited), DocumentInput(id="book", text=edited, tags=["new"])):
        assert (await trivet.documents.put("n", document)).status == "updated"
        assert len(counting.texts) < 3 < chunks
    with psycopg.connect(database_url) as db:
        register_vector(db)
        for text, embedding in db.execute("select text, embedding from memory").fetchall():
            np.testing.assert_allclose(embedding.to_numpy(), own_vector(text), atol=HALF_PRECISION)


async def test_a_document_is_deleted_as_one(trivet: Trivet) -> None:
    await trivet.documents.put("n", DocumentInput(id="h", text=HANDBOOK))
    await trivet.add("n", [MemoryInput(id="m", text="The handbook is blue.", document_id="h")])
    await trivet.documents.delete("n", "h")
    assert await memories_of(trivet) == ["m"]  # its metadata name the document, but it is not part of it
    for call in (trivet.documents.get, trivet.documents.delete):
        with pytest.raises(NotFound, match="there is no document 'h'"):
            await call("n", "h")
    with pytest.raises(NotFound, match="there is no namespace"):
        await trivet.documents.delete("nowhere", "h")


async def test_documents_are_listed_by_id(trivet: Trivet) -> None:
    for name in ("b", "a", "c", "a/b", "a b"):
        await trivet.documents.put("n", DocumentInput(id=name, text=f"{name} tea", title=name))
    await trivet.add("n", [MemoryInput(id="c1", kind="chunk", document_id="d", text="A chunk.", title="Own")])
    listed, cursor = [], None
    while True:
        page = await trivet.documents.list("n", cursor=cursor, limit=2)
        listed += page.documents
        if (cursor := page.next_cursor) is None:
            break
    assert {each.id: (each.title, each.chunks) for each in listed} == {
        "a": ("a", 1), "a b": ("a b", 1), "a/b": ("a/b", 1), "b": ("b", 1), "c": ("c", 1), "d": ("Own", 1),
    }  # fmt: skip
    assert len(listed) == 6


async def test_chunks_have_neighbours(trivet: Trivet) -> None:
    """BM25 scores a chunk with its neighbours, like a turn; other documents are not neighbours."""
    parts = [f"{word} {'tea and water and leaves and time ' * 20}\n\n" for word in ("Zeppelin", "Monday", "Copper")]
    await trivet.documents.put("n", DocumentInput(id="d", text="".join(parts), media_type="text/plain"))
    other = "Monday is when nothing happens. " + "Sand and stones and dust. " * 20
    await trivet.documents.put("n", DocumentInput(id="e", text=other, media_type="text/plain"))
    assert len((await trivet.documents.get("n", "d")).chunks) == 3
    answer = await trivet.search("n", SearchRequest(query="monday zeppelin", mode=Mode.BM25))
    found = [result.id for result in answer.results]
    assert set(found[:2]) == {"d#0", "d#1"}  # each has one of the words, and the other beside it
    assert "d#2" in found  # which has none


async def test_an_id_of_another_memory_is_not_taken(trivet: Trivet) -> None:
    await trivet.add("n", [MemoryInput(id="h#1", text="Mine.")])
    with pytest.raises(Conflict, match="'h#1' that is no chunk of document 'h'"):
        await trivet.documents.put("n", DocumentInput(id="h", text=HANDBOOK))
    assert await memories_of(trivet) == ["h#1"]


async def test_a_chunk_that_was_changed_by_hand_is_put_right(trivet: Trivet) -> None:
    document = DocumentInput(id="h", text=HANDBOOK)
    await trivet.documents.put("n", document)
    await trivet.patch("n", "h#1", MemoryPatch(position=None))
    await trivet.patch("n", "h#2", MemoryPatch(text="Scribbled.", session_id="s"))
    await trivet.delete("n", "h#3")
    assert (await trivet.documents.put("n", document)).status == "updated"
    assert (await trivet.documents.get("n", "h")).text == HANDBOOK
    assert (await trivet.documents.put("n", document)).status == "unchanged"


async def test_nobody_sees_half_of_a_document(trivet: Trivet) -> None:
    """While two writers put two versions in turn, every reader sees one of them."""
    versions = [HANDBOOK, HANDBOOK.replace("copper", "silver").replace("## Chapter 5", "## Chapter five")]
    await trivet.documents.put("n", DocumentInput(id="h", text=versions[0]))
    done = asyncio.Event()

    async def write(first: int) -> None:
        for turn in range(4):
            await trivet.documents.put("n", DocumentInput(id="h", text=versions[(first + turn) % 2]))

    async def read() -> None:
        while not done.is_set():
            assert (await trivet.documents.get("n", "h")).text in versions
            filters = Filters(document_id=["h"])
            answer = await trivet.search("n", SearchRequest(query="copper silver kettle", filters=filters, top_k=50))
            metals = {metal for each in answer.results for metal in ("copper", "silver") if metal in each.text}
            assert len(metals) == 1

    reader = asyncio.create_task(read())
    await asyncio.gather(write(0), write(1))
    done.set()
    await reader


async def test_two_writers_in_two_processes_leave_one_version(database_url: str, trivet: Trivet) -> None:
    """Locks of the database order them, not those of a process."""
    async with Trivet.open(trivet.settings) as other:
        versions = [HANDBOOK, HANDBOOK[:2_000], HANDBOOK.replace("copper", "silver") + "More."]

        async def write(engine: Trivet, first: int) -> None:
            for turn in range(3):
                await engine.documents.put("n", DocumentInput(id="h", text=versions[(first + turn) % 3]))

        await asyncio.gather(write(trivet, 0), write(other, 1))
        document = await trivet.documents.get("n", "h")
        assert document.text in versions
        assert set(await memories_of(trivet)) == {chunk.id for chunk in document.chunks}


async def test_a_document_that_is_sent_again_meanwhile_is_unchanged(trivet: Trivet) -> None:
    """Whichever process the second call comes to."""
    async with Trivet.open(trivet.settings) as other:
        document = DocumentInput(id="h", text=HANDBOOK)
        receipts = await asyncio.gather(*(engine.documents.put("n", document) for engine in (trivet, trivet, other)))
    assert sorted(receipt.status for receipt in receipts) == ["created", "unchanged", "unchanged"]


async def test_a_plain_text_waits_for_no_document_that_is_being_read(
    trivet: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, stored = asyncio.Semaphore(0), asyncio.Event()

    async def read_slowly(_form: str, content: bytes) -> Reading:
        begun.release()
        await stored.wait()
        return Reading(text=content.decode())

    monkeypatch.setattr(extraction, "_read_apart", read_slowly)
    page = DocumentInput(text="<p>A boat.</p>", media_type="text/html")
    slow = [asyncio.create_task(trivet.documents.put("n", page)) for _ in range(MOST_READERS)]
    for _ in slow:
        await begun.acquire()
    async with asyncio.timeout(PATIENCE_S):
        await trivet.documents.put("n", DocumentInput(text="A kettle."))
    stored.set()
    await asyncio.gather(*slow)


async def test_a_sentence_in_the_middle_of_100_pages_is_found_by_its_vector(trivet: Trivet) -> None:
    """By the vector leg alone, though its words are in the text's other sentences as well."""
    pages = long_text(100, random.Random(5))
    pages.insert(50, "The astronomer discovered a comet through a home-made telescope in December.\n\n")
    receipt = await trivet.documents.put("n", DocumentInput(id="book", text="".join(pages), media_type="text/plain"))
    assert receipt.chunks > 100
    query = "Who saw something new in the night sky?"
    answer = await trivet.search("n", SearchRequest(query=query, mode=Mode.VECTOR, top_k=3))
    assert any("comet" in result.text for result in answer.results)


async def test_bad_documents_are_refused(trivet: Trivet, subtests: pytest.Subtests) -> None:
    bad: list[tuple[DocumentInput, tuple[str, ...]]] = [
        (DocumentInput(id="h"), ("text",)),
        (DocumentInput(id="h", text="a", content_base64="YQ=="), ("text",)),
        (DocumentInput(id="h", content_base64="YQ="), ("content_base64",)),
        (DocumentInput(id="h", content_base64="ü"), ("content_base64",)),
        (DocumentInput(id="h", text="a", metadata={"document": 1}), ("metadata",)),
        (DocumentInput(id="..", text="a"), ("id",)),
        (DocumentInput(id="h", text="a\x00"), ("text",)),
        (DocumentInput(id="h", text="a", media_type="image/png"), ("media_type",)),
    ]
    for document, loc in bad:
        with subtests.test(document=document):
            with pytest.raises(InvalidInput) as caught:
                await trivet.documents.put("n", document)
            assert caught.value.loc == loc
            assert await trivet.list_namespaces() == []


@pytest.mark.parametrize(("heading", "media_type"), [("# {}", "text/markdown"), ("{}\n=======", "text/plain")])
async def test_the_first_of_several_equal_headings_is_no_title(trivet: Trivet, heading: str, media_type: str) -> None:
    days = "\n\n".join(f"{heading.format(day)}\n\n{'The kettle hums. ' * 60}" for day in ("Monday", "Tuesday"))
    await trivet.documents.put("n", DocumentInput(id="diary", text=days, media_type=media_type))
    document = await trivet.documents.get("n", "diary")
    titles = [(await trivet.get("n", chunk.id)).title for chunk in document.chunks]
    assert (document.title, titles[0], titles[-1]) == (None, "Monday", "Tuesday")


async def test_a_row_of_a_table_is_found_with_the_names_of_its_columns(trivet: Trivet) -> None:
    rows = "".join(f"{word} lamp,{len(word) * 9},{len(word)}\n" for word in WORDS * 3)
    table = f"product,price,in stock\n{rows}Bergamot lamp,39,2\n"
    await trivet.documents.put("n", DocumentInput(id="lamps", text=table, media_type="text/csv"))
    answer = await trivet.search("n", SearchRequest(query="What is the price of the Bergamot lamp?"))
    assert "Bergamot lamp,39,2" in answer.results[0].text
    assert answer.results[0].title == "product,price,in stock"
    document = await trivet.documents.get("n", "lamps")
    assert (document.text, document.title) == (table, None)
    for_excel = DocumentInput(id="lamps", text=f"sep=,\r\n{table}", media_type="text/csv")
    assert (await trivet.documents.put("n", for_excel)).status == "unchanged"


async def test_a_row_of_a_workbook_is_found_with_the_names_of_its_columns(trivet: Trivet) -> None:
    """With its own sheet's name; the workbook does not get the first sheet's name as title."""
    content = workbook(
        Staff=[["name", "room"], ["Ana", 12]],
        Lamps=[["product", "price"], *([f"{word} lamp", len(word) * 9] for word in WORDS * 3), ["Bergamot lamp", 39]],
    )
    name = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    encoded = base64.b64encode(content).decode()
    await trivet.documents.put("n", DocumentInput(id="lamps", content_base64=encoded, media_type=name))
    answer = await trivet.search("n", SearchRequest(query="What is the price of the Bergamot lamp?"))
    assert "| Bergamot lamp | 39 |" in answer.results[0].text
    assert answer.results[0].title == "Lamps › product | price"
    assert (await trivet.documents.get("n", "lamps")).title is None


async def test_long_titles_leave_room_for_the_text(trivet: Trivet) -> None:
    """A path of headings that would fill the embedder's window is cut to the document's title and the last heading."""
    deep = "".join(f"{'#' * level} {'heading ' * 20}{level}\n\nText of {level}.\n\n" for level in range(1, 7))
    await trivet.documents.put("n", DocumentInput(id="h", text=deep, title="The handbook"))
    titles = [(await trivet.get("n", chunk.id)).title for chunk in (await trivet.documents.get("n", "h")).chunks]
    assert all(title and len(title.split()) < 70 for title in titles)
