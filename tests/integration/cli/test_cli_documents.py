"""`trivet import --format document`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import trivet
from tests.command import Cli
from tests.exports import TELEGRAM_PAGE, claude, whatsapp_android
from tests.office import epub, notebook, ods, odt, open_document, shape, slides, word, workbook


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
    refused = cli("import", str(picture), "--format", "document", status=1).output
    assert "it is a picture" in refused
    assert refused.startswith(f"Error: {picture}: ")
    assert "from a file on disk" in cli("import", "-", "--format", "document", stdin="tea", status=1).output


def test_a_file_of_notes_is_a_document_by_its_name(cli: Cli, tmp_path: Path) -> None:
    notes = tmp_path / "garden.org"
    notes.write_text("* Garden\nWater the roses on Monday.\n", encoding="utf-8")
    assert "created, chunks: 1" in cli("import", str(notes), "-n", "home").stdout


def test_each_file_of_a_folder_is_a_document(cli: Cli, tmp_path: Path) -> None:
    """Hidden files, exports and other non-documents are skipped; unreadable files do not stop the others."""
    notes = tmp_path / "Notes & more"
    for name, text in {
        "roses.md": "# Roses\n\nWater them on Monday.",
        "house/tap.txt": "The tap in the kitchen drips.",
        "house/empty.txt": "",
        "house/roof.png": "no text",
        "chats.json": "[]",
        ".obsidian/app.md": "# Hidden",
    }.items():
        (notes / name).parent.mkdir(parents=True, exist_ok=True)
        (notes / name).write_text(text, encoding="utf-8")
    done = cli("import", str(notes), "-n", "home", status=1)
    assert done.stdout.startswith("3 documents: 2 created, chunks: 2 in ")
    assert done.stdout.endswith("skipped 2 other files: 1 .json, 1 .png\n")
    assert "empty.txt has 0 bytes" in done.stderr
    assert done.stderr.endswith("Error: 1 of 3 documents rejected\n")
    (notes / "house/empty.txt").write_text("No more.", encoding="utf-8")
    (notes / "house/tap.txt").write_text("The tap in the kitchen is mended.", encoding="utf-8")
    again = json.loads(cli("import", str(notes), "-n", "home", "--format", "document", "--json").stdout)
    assert {Path(name).name: put["status"] for name, put in again["documents"].items()} == {
        "roses.md": "unchanged", "tap.txt": "updated", "empty.txt": "created",
    }  # fmt: skip
    found = cli("search", "Does the tap drip?", "-n", "home", "--json").stdout
    assert "mended" in found
    assert "Hidden" not in found
    assert "drips" not in found


def test_no_link_leads_out_of_a_folder(cli: Cli, tmp_path: Path) -> None:
    """Whoever made the folder may know where its reader keeps a key. One in a circle is rejected alone, too."""
    (tmp_path / "key.txt").write_text("4711", encoding="utf-8")
    (notes := tmp_path / "notes").mkdir()
    (notes / "roses.md").write_text("Water the roses on Monday.", encoding="utf-8")
    (notes / "flowers.md").symlink_to("roses.md")
    (notes / "tulips.md").symlink_to("../key.txt")
    (notes / "violets.md").symlink_to("violets.md")
    (tmp_path / "link").symlink_to(notes)
    for folder in (notes, tmp_path / "link"):
        done = json.loads(cli("import", folder, "-n", "home", "--json", status=1).stdout)
        assert [Path(name).name for name in done["documents"]] == ["flowers.md", "roses.md"]
        assert ["out of the folder" in reason for reason in done["rejected"].values()] == [True, False]
    assert "4711" not in cli("export", "-n", "home").stdout


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_file_whose_name_is_not_utf8_is_rejected_by_that_name(cli: Cli, tmp_path: Path) -> None:
    for name in ("roses.md", "ros\udce9.md"):
        (tmp_path / name).write_text("Water the roses on Monday.", encoding="utf-8")
    done = json.loads(cli("import", tmp_path, "-n", "home", "--json", status=1).stdout)
    assert ([*done["documents"]], [*done["rejected"]]) == (
        [f"{tmp_path}/roses.md"],
        [f"{tmp_path}/ros\udce9.md"],
    )


def test_documents_of_a_folder_whose_files_are_gone_are_deleted_on_request(
    cli: Cli, database_url: str, tmp_path: Path
) -> None:
    """Not unreadable files' documents, and nothing that came from elsewhere, whatever its file name."""
    notes, others = tmp_path / "notes", tmp_path / "others"
    for folder in (notes, others):
        for name in ("roses.md", "house/tap.txt", "house/roof.txt"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"{name} of {folder.name}", encoding="utf-8")
        cli("import", folder, "-n", "home")
    (others / "cups.txt").write_text("Cups of others", encoding="utf-8")
    with trivet.open(database_url=database_url) as client:
        client.add_document(path=others / "cups.txt", namespace="home", metadata={"file": "../others/cups.txt"})
    for gone in (notes / "house/tap.txt", others / "cups.txt", others / "roses.md"):
        gone.unlink()
    (notes / "house/roof.txt").write_bytes(b"")
    assert "deleted" not in cli("import", notes, "-n", "home", status=1).output
    assert "\ndeleted 1 whose files are gone\n" in cli("import", notes, "-n", "home", "--delete", status=1).stdout
    chunks = [json.loads(line) for line in cli("export", "-n", "home").stdout.splitlines()[1:]]
    assert {chunk["text"] for chunk in chunks} == {
        "roses.md of notes", "house/roof.txt of notes", "roses.md of others", "house/tap.txt of others",
        "house/roof.txt of others", "Cups of others",
    }  # fmt: skip
    (notes / "house/roof.txt").unlink()
    assert [*json.loads(cli("import", notes, "-n", "home", "--delete", "--json").stdout)["deleted"]] == [
        "house/roof.txt"
    ]
    assert "for a folder" in cli("import", notes / "roses.md", "-n", "home", "--delete", status=2).output


def test_a_folder_without_documents_or_as_an_export_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    refused = cli("import", str(tmp_path), status=1).output
    assert "there are no documents in" in refused
    assert "give an export itself, or its zip" in refused
    refused = cli("import", str(tmp_path), "--format", "slack", status=1).output
    assert "give the slack export itself, or its zip" in refused
    for name, export, content in (
        ("whatsapp", "_chat.txt", whatsapp_android),
        ("claude", "con\x1b]0;\x07versations.json", claude),  # a terminal must not obey the name
        ("telegram", "messages.html", lambda: TELEGRAM_PAGE),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "notes.txt").write_text("Water the roses on Monday.")
        (folder / export).write_bytes(content())
        refused = cli("import", str(folder), status=1).output
        shown = export.replace("\x1b", "\ufffd").replace("\x07", "\ufffd")
        assert f"{shown} is of the format {name}: give that file itself" in refused
    assert json.loads(cli("namespaces", "--json").stdout) == {"namespaces": []}
    assert "2 documents: 2 created" in cli("import", str(tmp_path / "whatsapp"), "--format", "document").stdout


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("roses.docx", word(("Title", "Garden"), ("", "Water the roses on Monday."))),
        ("roses.odt", odt("<text:h>Garden</text:h><text:p>Water the roses on Monday.</text:p>")),
        ("roses.ods", ods(["what", "when"], ["Water the roses", "Monday"])),
        (
            "roses.odp",
            open_document("presentation", "<draw:page><text:p>Water the roses on Monday.</text:p></draw:page>"),
        ),
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


def test_a_notebook_on_one_line_is_not_json_lines(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "roses.ipynb"
    file.write_text(json.dumps(json.loads(notebook(("markdown", "Water the roses on Monday.")))), encoding="utf-8")
    assert "created, chunks: 1" in cli("import", str(file), "-n", "home").stdout


def test_a_table_in_an_older_encoding_is_a_document_that_says_which_one_it_was_read_in(
    cli: Cli, tmp_path: Path
) -> None:
    table = tmp_path / "prices.csv"
    table.write_bytes("Größe;Preis\nKüche;3 €\n".encode("cp1252"))
    done = cli("import", str(table), "-n", "home")
    assert "created, chunks: 1" in done.stdout
    assert "read as cp1252" in done.stderr
    assert "--map text=COLUMN makes rows memories" in done.stderr
    again = json.loads(cli("import", str(table), "-n", "home", "--json").stdout)
    assert (again["status"], "cp1252" in again["warning"]) == ("unchanged", True)
    assert "3 €" in cli("search", "Küche", "-n", "home", "--json").stdout
