"""Chunks follow the structure of their text and have the headings above them."""

from __future__ import annotations

import pytest

from retrieval.documents.splitting import CHUNK_PIECES, SMALL_PIECES, DocumentSplitter, headings
from retrieval.text.word_pieces import by_words, count_pieces

PARAGRAPH = "The kettle whistles before the water boils over. " * 12
MARKDOWN = f"""# Handbook

{PARAGRAPH}

## Leave

{PARAGRAPH}

### Illness

```sh
# no heading
```

{PARAGRAPH}

Pay
---

{PARAGRAPH}
"""


@pytest.fixture(scope="module")
def splitter() -> DocumentSplitter:
    return DocumentSplitter(count_pieces)


def test_chunks_of_markdown_know_their_headings(splitter: DocumentSplitter) -> None:
    chunks = splitter.split(MARKDOWN, "markdown")
    assert list(dict.fromkeys(chunk.headings for chunk in chunks)) == [
        ("Handbook",),
        ("Handbook", "Leave"),
        ("Handbook", "Leave", "Illness"),
        ("Handbook", "Pay"),
    ]
    assert [chunk.text.split("\n")[0] for chunk in chunks] == ["# Handbook", "## Leave", "### Illness", "Pay"]


def test_underlined_headings_of_plain_text_have_the_levels_of_their_underlines(splitter: DocumentSplitter) -> None:
    text = f"====\nTea\n====\n\n{PARAGRAPH}\n\nGreen tea\n=========\n\n{PARAGRAPH}\n\nSencha\n~~~~~~\n\n{PARAGRAPH}\n\n"
    text += f"Black tea\n=========\n\n{PARAGRAPH}"
    chunks = splitter.split(text, "text")
    assert [chunk.headings for chunk in chunks] == [
        ("Tea",), ("Tea", "Green tea"), ("Tea", "Green tea", "Sencha"), ("Tea", "Black tea"),
    ]  # fmt: skip


def test_what_is_no_heading() -> None:
    """A table's ruler, a code block's comment, a short underline, a line of a list."""
    assert [*headings("a | b\n--- | ---\n", "text"), *headings("Longer than that\n---\n", "text")] == []
    assert [*headings("```\n# no\n```\n#no\n\n---\n", "markdown"), *headings("classes of tea\n", "code")] == []
    assert [*headings("- item\n---\n1. item\n---\n> said\n---\n", "markdown")] == []
    assert [each.title for each in headings("```\n~~~\n# no\n```\n# yes #\n", "markdown")] == ["yes"]


def test_front_matter_is_no_heading() -> None:
    page = "---\ntitle: Tea\ndraft: false\n---\n\n# Green\n"
    assert [(each.title, page[each.start : each.end]) for each in headings(page, "markdown")] == [
        ("Green", "# Green\n")
    ]
    assert [each.title for each in headings("1. Green\n======\n", "markdown")] == ["1. Green"]
    ruled = "---\nNote: a draft\n\n# Green\n\n---\n"
    assert [each.title for each in headings(ruled, "markdown")] == ["Green"]
    assert [each.title for each in headings("---\nnote: never closed\n\n# Green\n", "markdown")] == ["Green"]


def test_a_heading_with_many_spaces_is_read_at_once() -> None:
    """An expression that tries every way to divide them would take an hour."""
    [found] = headings("# a" + " " * 20_000 + "b  ##  \n", "markdown")
    assert found.title.startswith("a")


def test_definitions_of_source_code_are_nested_by_their_indentation(splitter: DocumentSplitter) -> None:
    body = "\n".join(f"        self.part_{number} = number + {number}" for number in range(40))
    code = (
        f"class Kettle:\n    def boil(self):\n{body}\n    def pour(self):\n{body}\n\nexport async function steep() {{\n"
    )
    paths = dict.fromkeys(chunk.headings for chunk in splitter.split(code + body, "code"))
    assert list(paths) == [
        ("class Kettle", "def boil"), ("class Kettle", "def pour"), ("export async function steep",),
    ]  # fmt: skip


def test_what_stands_above_a_definition_belongs_to_it() -> None:
    code = "/** Greets. */\nfunction greet() {\n}\n\n# Adds.\n@cached\ndef add(a, b):\n    return a\n"
    assert [code[each.start :].splitlines()[0] for each in headings(code, "code")] == ["/** Greets. */", "# Adds."]


def test_prose_within_code_is_no_definition() -> None:
    prose = "from enum import Enum\nthis function returns it\nfor fn in found:\n"
    code = prose + "impl Tea for Green {\nclass Tea extends Drink"
    assert [each.title for each in headings(code, "code")] == ["impl Tea", "class Tea"]


def test_chunks_of_a_table_know_its_columns(splitter: DocumentSplitter) -> None:
    rows = "".join(f"Lamp {number},{number * 7},{number % 5}\n" for number in range(90))
    chunks = splitter.split(f"lamp,price,in stock\n{rows}", "table")
    assert len(chunks) > 2
    assert {chunk.headings for chunk in chunks} == {("lamp,price,in stock",)}
    assert all(chunk.text.endswith("\n") for chunk in chunks)  # rows stay whole


def test_chunks_of_a_long_table_in_markdown_know_its_columns(splitter: DocumentSplitter) -> None:
    """Chunks after the first, which has them in its text; text after the table does not get them."""
    rows = "".join(f"| Lamp {number} | - | {number * 7} |\n| - | - | - |\n" for number in range(60))
    text = (
        f"# Lamps\n\n{PARAGRAPH}\n\n| name | note | price |\n|---|:--|--:|\n{rows}\n{PARAGRAPH}\n\n## Pay\n\n| a | b |"
    )
    chunks = splitter.split(text, "markdown")
    assert len(chunks) > 6
    for chunk in chunks:
        columns = ("name | note | price",) if chunk.text.startswith("| ") and "name" not in chunk.text else ()
        assert chunk.headings == ("Lamps", *(("Pay",) if "Pay" in chunk.text else columns))
    assert sum(len(chunk.headings) > 1 for chunk in chunks) > 4


def test_short_sections_share_a_chunk(splitter: DocumentSplitter) -> None:
    glossary = "".join(f"## Term {number}\n\nWhat it means.\n\n" for number in range(30))
    chunks = splitter.split(glossary, "markdown")
    assert len(chunks) < 12
    assert chunks[0].headings == ("Term 0",)


def test_sentences_stay_whole(splitter: DocumentSplitter) -> None:
    """Of a paragraph that is longer than a chunk."""
    sentences = [f"Sentence number {number} tells of the kettle that whistled in the kitchen. " for number in range(60)]
    chunks = splitter.split("".join(sentences), "text")
    assert len(chunks) > 4
    assert all(chunk.text in "".join(sentences) and chunk.text.strip()[-1] == "." for chunk in chunks)
    assert max(count_pieces(chunk.text) for chunk in chunks) <= CHUNK_PIECES + SMALL_PIECES


def test_pieces_may_be_counted_by_a_function() -> None:
    """As with the word pieces of embedders with their own tokenizer."""
    by_words = DocumentSplitter(lambda text: len(text.split()), pieces=10)
    chunks = [chunk.text for chunk in by_words.split("One more sentence of six words. " * 200, "text")]
    assert "".join(chunks) == "One more sentence of six words. " * 200
    assert max(len(chunk.split()) for chunk in chunks) <= 10 + SMALL_PIECES


def test_a_word_is_tokenised_once(splitter: DocumentSplitter) -> None:
    """However often the splitter looks for the place to cut."""
    tokenised: list[str] = []

    def count(word: str) -> int:
        tokenised.append(word)
        return count_pieces(word)

    chunks = DocumentSplitter(by_words(count)).split(MARKDOWN, "markdown")
    assert chunks == splitter.split(MARKDOWN, "markdown")
    assert sorted(tokenised) == sorted({*tokenised})
