"""`trivet import --format document`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import Cli
from tests.office import epub, notebook, shape, slides, word, workbook


def test_a_file_is_imported_as_a_document_and_again_as_the_same(cli: Cli, tmp_path: Path) -> None:
    page = tmp_path / "kettles.html"
    page.write_text("<title>Kettles</title><h1>Copper</h1><p>It whistles.</p>", encoding="utf-8")
    first = json.loads(cli("import", str(page), "-n", "home", "--format", "document", "--json").stdout)
    assert (first["status"], first["chunks"]) == ("created", 1)
    again = cli("import", str(page), "-n", "home", "--format", "document").stdout
    assert again == f"{page}: document {first['document_id']} unchanged, chunks: 1\n"
    assert first["document_id"] in cli("search", "What whistles?", "-n", "home", "--json").stdout


def test_what_is_no_document_is_status_one(cli: Cli, tmp_path: Path) -> None:
    picture = tmp_path / "scan.pdf"
    picture.write_bytes(b"\x89PNG")
    assert "it is a picture" in cli("import", str(picture), "--format", "document", status=1).output
    assert "from a file on disk" in cli("import", "-", "--format", "document", stdin="tea", status=1).output


def test_a_file_of_notes_is_a_document_by_its_name(cli: Cli, tmp_path: Path) -> None:
    notes = tmp_path / "garden.org"
    notes.write_text("* Garden\nWater the roses on Monday.\n", encoding="utf-8")
    assert "created, chunks: 1" in cli("import", str(notes), "-n", "home").stdout


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("roses.docx", word(("Title", "Garden"), ("", "Water the roses on Monday."))),
        ("roses.xlsx", workbook(Garden=[["what", "when"], ["Water the roses", "Monday"]])),
        ("roses.pptx", slides(shape("Garden", "title") + shape("Water the roses on Monday."))),
        ("roses.epub", epub("Garden", {"a.xhtml": "<p>Water the roses on Monday.</p>"})),
        ("roses.ipynb", notebook(("markdown", "# Garden\n\nWater the roses on Monday."))),
    ],
)
def test_what_other_programs_write_is_a_document_by_its_name(
    name: str, content: bytes, cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    assert "created, chunks: 1" in cli("import", str(file), "-n", "home").stdout
    assert "Monday" in cli("search", "When are the roses watered?", "-n", "home", "--json").stdout
    file.write_bytes(content[: len(content) // 2])
    assert "cannot be read" in cli("import", str(file), "-n", "home", status=1).output


def test_a_table_in_an_older_encoding_is_a_document_that_says_which_one_it_was_read_in(
    cli: Cli, tmp_path: Path
) -> None:
    table = tmp_path / "prices.csv"
    table.write_bytes("Größe;Preis\nKüche;3 €\n".encode("cp1252"))
    done = cli("import", str(table), "-n", "home")
    assert "created, chunks: 1" in done.stdout
    assert "read as cp1252" in done.stderr
    again = json.loads(cli("import", str(table), "-n", "home", "--json").stdout)
    assert (again["status"], "cp1252" in again["warning"]) == ("unchanged", True)
    assert "3 €" in cli("search", "Küche", "-n", "home", "--json").stdout
