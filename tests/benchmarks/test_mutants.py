"""The mutants: the code that each one changes exists."""

from __future__ import annotations

import pytest

from benchmarks.mutants import MUTANTS, ROOT, Mutant, places_of


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_one_place_and_its_tests_are_there(mutant: Mutant) -> None:
    assert len(places_of(ROOT, mutant)) == 1
    assert [*(ROOT / "tests").rglob(f"{mutant.killed_by.split()[0]}.py")]
