"""The locks against concurrent writes of a session, or of a memory and one that supersedes it."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from retrieval.store.locking import MOST_LOCKS, _id_locks, _session_locks

FEW, MANY, VERY_MANY = ([f"m{at}" for at in range(count)] for count in (3, MOST_LOCKS, 10 * MOST_LOCKS))
BATCHES = (["m0"], FEW, MANY, VERY_MANY)


def wait_for_each_other(one: dict[int, bool], other: dict[int, bool]) -> bool:
    return any(one[key] or other[key] for key in one.keys() & other.keys())


@pytest.mark.parametrize("written", BATCHES)
@pytest.mark.parametrize("superseded", BATCHES)
def test_who_writes_a_memory_waits_for_who_supersedes_it(written: Collection[str], superseded: Collection[str]) -> None:
    """However many others either has."""
    assert wait_for_each_other(_id_locks(7, written, []), _id_locks(7, ["new"], superseded))
    assert wait_for_each_other(_id_locks(7, [], superseded), _id_locks(7, written, ["old"]))


@pytest.mark.parametrize("written", BATCHES)
def test_who_writes_memories_waits_for_nobody_else(written: Collection[str]) -> None:
    for others in BATCHES:
        assert not wait_for_each_other(_id_locks(7, written, []), _id_locks(7, others, []))
    assert not wait_for_each_other(_id_locks(7, FEW, ["old"]), _id_locks(7, MANY, ["older"]))
    assert not wait_for_each_other(_id_locks(7, written, []), _id_locks(8, [], written))


def test_who_writes_a_session_waits_for_who_writes_it_too() -> None:
    """However many others either has."""
    for sessions in BATCHES:
        assert wait_for_each_other(_session_locks(7, ["m0"]), _session_locks(7, sessions))
    assert not wait_for_each_other(_session_locks(7, ["new"]), _session_locks(7, MANY))
    assert not wait_for_each_other(_session_locks(7, ["m0"]), _session_locks(8, VERY_MANY))


def test_locks_are_bounded() -> None:
    for written in BATCHES:
        assert len(_session_locks(7, written)) <= 1 + MOST_LOCKS
        for superseded in BATCHES:
            assert len(_id_locks(7, written, superseded)) <= 1 + 2 * MOST_LOCKS
