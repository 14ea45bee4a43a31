"""The pages of docs/reference match the code."""

from __future__ import annotations

import pytest

from docs.reference import generate


@pytest.mark.parametrize("page", generate.PAGES)
def test_it_is_up_to_date(page: str) -> None:
    """`python -m docs.reference.generate` would write nothing else."""
    assert (generate.HERE / page).read_text(encoding="utf-8") == generate.text_of(page)


def test_file_formats_name_every_column_that_is_understood() -> None:
    from retrieval.imports.columns import USUAL_NAMES

    text = (generate.HERE / "file-formats.md").read_text(encoding="utf-8")
    for field, names in USUAL_NAMES.items():
        assert f"| `{field}` | {', '.join(f'`{name}`' for name in names)} |" in text
