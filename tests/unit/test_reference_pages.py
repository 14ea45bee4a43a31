"""The pages of docs/reference match the code."""

from __future__ import annotations

import re

import pytest

from docs.reference import generate


@pytest.mark.parametrize("page", generate.PAGES)
def test_it_is_up_to_date(page: str) -> None:
    """`python -m docs.reference.generate` would write nothing else."""
    assert (generate.HERE / page).read_text(encoding="utf-8") == generate.text_of(page)


def test_it_has_the_defaults_of_parameters_and_which_are_required() -> None:
    text = (generate.HERE / "http.md").read_text(encoding="utf-8")
    paths = text.partition("`GET /v1/namespaces/{ns}/paths`")[2].partition("###")[0]
    columns = [[cell.strip() for cell in line.split("|")[1:-1]] for line in paths.splitlines() if "| query |" in line]
    assert {name.strip("`"): default for name, _, _, default, _ in columns} == {
        "source": "", "target": "", "max_hops": "`3`", "limit": "`3`", "words": "`false`", "filters": "left out",
        "as_of": "left out", "include_superseded": "`false`",
    }  # fmt: skip


def test_it_says_what_each_method_of_the_client_returns() -> None:
    text = (generate.HERE / "python.md").read_text(encoding="utf-8")
    returned = dict(re.findall(r"^(\w+)\((?:\n    .*)*\n\) -> (.+)$", text, re.MULTILINE))
    assert returned["search"] == "SearchResponse"
    assert returned["export"] == "Iterator[bytes]"


def test_file_formats_name_every_column_that_is_understood() -> None:
    from retrieval.imports.columns import USUAL_NAMES

    text = (generate.HERE / "file-formats.md").read_text(encoding="utf-8")
    for field, names in USUAL_NAMES.items():
        assert f"| `{field}` | {', '.join(f'`{name}`' for name in names)} |" in text
