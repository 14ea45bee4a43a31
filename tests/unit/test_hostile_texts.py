"""Texts that would take minutes or hours, or the whole stack, if processed in more than linear time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graph.extraction import extract
from graph.statements import find_relations
from retrieval.answer.conversation import MOST_QUERY_CHARS, query_of
from retrieval.answer.pack_formats import _escaped
from retrieval.documents.html import read_html
from retrieval.documents.splitting import title_in
from retrieval.imports import mbox
from retrieval.text import analysis
from retrieval.text.analysis import analyze, term_id
from retrieval.types.search import ChatMessage
from tests.counting import calls
from tests.exports import as_json, chatgpt_conversation, node, said, talk
from tests.importing import Imported

LENGTH = 200_000


def asked(*texts: str) -> str:
    return query_of([ChatMessage(role="user", content=text) for text in texts])


def of_chatgpt(text: str) -> list[str]:
    mapping = {"a": node("a", None, said("assistant", text, None, id="m"))}
    return Imported(
        as_json([chatgpt_conversation(talk(count=1), "c") | {"mapping": mapping, "current_node": "a"}])
    ).texts


def of_whatsapp(text: str) -> list[str]:
    return Imported(f"30/01/2024, 21:50 - Nora: {text}\n").texts


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (lambda text: len(list(find_relations(text, speaker="Bo"))), f"My sister Ann works at Acme {'.' * LENGTH}a", 2),
        (lambda text: len(analyze(text, "english")), "a" + "'s" * LENGTH, 1),
        (
            lambda text: asked(text, "What did it do yesterday?")[-25:],
            "2023-05-01 " * LENGTH,
            "What did it do yesterday?",
        ),
        (lambda text: len(asked(*[text] * 1_000)), "it is the " * 390, MOST_QUERY_CHARS),
        (_escaped, "[tea] " + "\\" * LENGTH, "[tea] " + "\\" * LENGTH),
        (lambda text: title_in(text, "markdown"), f"---\ntitle: a{' ' * LENGTH}b \n---\n# Tea\n", f"a{' ' * LENGTH}b"),
        (lambda page: read_html(page.encode()).text, "<p>Tea</p>" + "<a " * LENGTH, f"Tea\n\n{'<a ' * LENGTH}"),
        (lambda page: read_html(page.encode()).text, "<p>Tea</p>" + "<!-- " * LENGTH, f"Tea\n\n{'<!-- ' * LENGTH}"),
        (of_chatgpt, "【1†" * LENGTH, ["【1†" * LENGTH]),
        (of_chatgpt, "x" + "\ue200" * LENGTH, ["x"]),
        (of_whatsapp, f"hello{' ' * LENGTH}bye", [f"hello{' ' * LENGTH}bye"]),
    ],
    ids=[
        *("stops", "clitics", "log", "turns", "backslashes", "title", "tags", "comments"),
        *("references", "marks", "blanks"),
    ],
)
def test_it_is_read_at_once(read: Callable[[str], object], text: str, expected: object) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("read", "piece"), [(extract, '"Aa Bb" then Cc '), (mbox.said, "> b\nx:\n")], ids=["quotations", "quoted mails"]
)
def test_twice_the_text_is_twice_the_work(read: Callable[[str], object], piece: str) -> None:
    once, twice = piece * 300, piece * 600
    assert calls(lambda: read(twice)) < 2.5 * calls(lambda: read(once))


def test_long_words_are_not_kept() -> None:
    kept = analysis._cached_id.cache_info().currsize
    assert len({term_id("a" * length) for length in range(65, 165)}) == 100
    assert analysis._cached_id.cache_info().currsize == kept
