from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.server.publishing import deduplication
from pulsar_py.server.publishing.deduplication import GONE, Deduplication, DuplicateStatus

NEW, DUPLICATE, UNKNOWN = DuplicateStatus.NEW, DuplicateStatus.DUPLICATE, DuplicateStatus.UNKNOWN


def state() -> Deduplication:
    return Deduplication(max_producers=10)


def test_what_is_stored_is_a_duplicate_and_what_is_under_way_is_unknown() -> None:
    dedup = state()
    assert dedup.decide("p", 0, 0) is NEW
    assert dedup.decide("p", 0, 0) is UNKNOWN
    dedup.on_persisted("p", 0)
    assert dedup.decide("p", 0, 0) is DUPLICATE
    assert dedup.decide("p", 1, 1) is NEW


def test_gaps_are_fine_and_what_is_below_is_a_duplicate() -> None:
    dedup = state()
    dedup.decide("p", 5, 5)
    dedup.on_persisted("p", 5)
    assert dedup.decide("p", 3, 3) is DUPLICATE
    assert dedup.decide("p", 6, 6) is NEW


def test_a_batch_is_looked_at_by_its_lowest_id_and_counts_by_its_highest() -> None:
    dedup = state()
    assert dedup.decide("p", 0, 2) is NEW
    dedup.on_persisted("p", 2)
    assert dedup.decide("p", 2, 4) is DUPLICATE
    assert dedup.decide("p", 3, 5) is NEW
    assert dedup.last_sequence_id("p") == 5


def test_after_a_failure_what_was_not_stored_is_new_again() -> None:
    dedup = state()
    dedup.decide("p", 0, 0)
    dedup.on_persisted("p", 0)
    dedup.decide("p", 1, 1)
    dedup.on_append_failed()
    assert dedup.decide("p", 1, 1) is NEW


def test_a_snapshot_and_a_replay_give_the_state_back() -> None:
    dedup = state()
    for n in range(3):
        dedup.decide("p", n, n)
        dedup.on_persisted("p", n)
    snapshot = dedup.snapshot()
    again = state()
    again.recover(snapshot, now=0.0)
    again.replay("p", 3, now=0.0)
    assert again.last_sequence_id("p") == 3
    assert again.decide("p", 3, 3) is DUPLICATE


def test_producers_gone_for_long_are_forgotten() -> None:
    dedup = state()
    dedup.decide("p", 0, 0)
    dedup.on_persisted("p", 0)
    dedup.on_producer_removed("p", now=10.0)
    assert not dedup.forget_inactive(now=20.0, inactivity_seconds=10.0)
    assert dedup.forget_inactive(now=20.1, inactivity_seconds=10.0)
    assert dedup.last_sequence_id("p") == -1


def test_one_that_came_back_is_not_forgotten() -> None:
    dedup = state()
    dedup.on_producer_removed("p", now=0.0)
    dedup.on_producer_added("p")
    assert not dedup.forget_inactive(now=100.0, inactivity_seconds=10.0)


def test_a_snapshot_keeps_those_that_are_there() -> None:
    dedup = Deduplication(max_producers=2)
    for n, name in enumerate("abc"):
        dedup.on_persisted(name, n)
    dedup.on_producer_removed("b", now=1.0)
    dedup.on_producer_removed("a", now=5.0)
    assert set(dedup.snapshot()) == {"a", "c"}


def test_changes_since_a_snapshot_bring_it_up_to_date() -> None:
    dedup = state()
    for n, name in enumerate("abc"):
        dedup.on_persisted(name, n)
        dedup.on_producer_removed(name, now=float(n))
    again = state()
    again.recover(dedup.snapshot(), now=0.0)
    dedup.on_persisted("b", 7)
    dedup.forget_inactive(now=10.5, inactivity_seconds=10.0)
    changed = dedup.begin_snapshot()
    assert dedup.persisted_ids(changed) == {"a": GONE, "b": 7}
    again.recover(dedup.persisted_ids(changed), now=1.0)
    assert again.snapshot() == dedup.snapshot() == {"b": 7, "c": 2}
    dedup.check()


def test_of_too_many_names_those_that_left_first_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deduplication, "MAX_NAMES", 200)
    dedup = state()
    for n in range(1000):
        dedup.decide(f"p{n}", 0, 0)
        dedup.on_persisted(f"p{n}", 0)
        dedup.on_producer_removed(f"p{n}", float(n))
        dedup.check()
        assert len(dedup) <= 200
    assert dedup.last_sequence_id("p999") == 0
    assert dedup.last_sequence_id("p0") == -1


def test_many_inactive_names_are_forgotten_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deduplication, "FORGOTTEN_AT_ONCE", 3)
    dedup = state()
    for n in range(7):
        dedup.on_persisted(f"p{n}", n)
        dedup.on_producer_removed(f"p{n}", float(n))
    known = []
    while dedup.forget_inactive(now=100.0, inactivity_seconds=94.5):
        known.append(len(dedup))
        dedup.check()
    assert known == [4, 1]
    assert dedup.last_sequence_id("p6") == 6


def test_changes_that_could_not_be_stored_are_in_the_next_snapshot() -> None:
    dedup = state()
    for n, name in enumerate("abc"):
        dedup.on_persisted(name, n)
        dedup.on_producer_removed(name, float(n))
    failed = dedup.begin_snapshot()
    dedup.on_persisted("b", 9)
    dedup.forget_inactive(now=10.5, inactivity_seconds=10.0)
    dedup.snapshot_failed(failed)
    dedup.check()
    changed = dedup.begin_snapshot()
    assert sorted(set(changed)) == ["a", "b", "c"]
    assert changed.count("b") == 1
    assert dedup.persisted_ids(changed) == {"a": GONE, "b": 9, "c": 2}
    assert dedup.begin_snapshot() == []


def test_ten_thousand_names_fit_properties_unless_they_are_long() -> None:
    dedup = Deduplication(max_producers=100_000)
    dedup.recover({f"producer-{n}": n for n in range(10_000)}, now=0.0)
    assert dedup.fits_properties
    dedup.on_persisted("one-more", 1)
    assert not dedup.fits_properties
    dedup.max_producers = 10_000
    assert dedup.fits_properties
    assert len(dedup.snapshot()) == 10_000
    long = Deduplication(max_producers=100)
    long.recover({"n" * 10_000 + str(n): n for n in range(100)}, now=0.0)
    assert not long.fits_properties


def test_names_count_by_what_is_stored_of_them() -> None:
    wide = Deduplication(max_producers=10_000)
    wide.recover({"\u6f22" * 30 + str(n): n for n in range(10_000)}, now=0.0)
    wide.check()
    assert not wide.fits_properties, "three bytes a character"
    wide.forget_inactive(100.0, 10.0)
    wide.check()

    mixed = Deduplication(max_producers=100)
    mixed.recover({str(n): n for n in range(900)}, now=0.0)
    mixed.recover({"n" * 10_000 + str(n): n for n in range(100)}, now=1.0)
    assert not mixed.fits_properties, "the newest ones are the long ones"
    mixed.recover({f"late-{n}": n for n in range(100)}, now=2.0)
    assert mixed.fits_properties, "the long ones left before those that are stored"
    assert set(mixed.snapshot()) == {f"late-{n}" for n in range(100)}


@contextmanager
def lines_run() -> Iterator[list[int]]:
    """The lines that run inside, one by one."""
    lines: list[int] = []

    def on_event(frame: FrameType, event: str, _: object) -> object:
        if event == "line":
            lines.append(frame.f_lineno)
        return on_event

    before = sys.gettrace()
    sys.settrace(on_event)  # type: ignore[arg-type]
    try:
        yield lines
    finally:
        sys.settrace(before)


def test_of_many_names_the_newest_are_kept_and_few_others_are_looked_at() -> None:
    dedup = Deduplication(max_producers=100)
    for number in range(20_000):
        dedup.on_persisted(f"p{number}", number)
        if number % 5_000:
            dedup.on_producer_removed(f"p{number}", float(number))
    dedup.check()
    with lines_run() as lines:
        names = dedup.newest_names()
    connected = [f"p{number}" for number in range(0, 20_000, 5_000)]
    assert names == [*(f"p{number}" for number in range(19_904, 20_000)), *connected]
    assert len(lines) < 1_000
    dedup.on_producer_added("p7")
    assert dedup.newest_names() == [*names[1:96], *connected, "p7"]
    dedup.check()


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.booleans())))
def test_nothing_is_stored_twice(sends: list[tuple[str, int, bool]]) -> None:
    dedup = state()
    stored: dict[str, list[int]] = {"a": [], "b": []}
    for name, sequence_id, is_stored in sends:
        if dedup.decide(name, sequence_id, sequence_id) is not NEW:
            continue
        if is_stored:
            dedup.on_persisted(name, sequence_id)
            stored[name].append(sequence_id)
        else:
            dedup.on_append_failed()
        dedup.check()
    for ids in stored.values():
        assert ids == sorted(set(ids))


def test_a_run_is_new_if_all_of_it_ascends():
    state = Deduplication(max_producers=10)
    assert not state.is_new_run("p", [0], [None])  # the name is not known
    assert state.decide("p", 3, 3) is DuplicateStatus.NEW
    assert state.is_new_run("p", [4, 5, 9], [None, 8, 9])
    assert not state.is_new_run("p", [3, 4], [None, None])
    assert not state.is_new_run("p", [4, 6], [6, None])
    assert state.is_new_run("p", [4, 5, 6], [None, None, None])
    assert not state.is_new_run("p", [4, 6, 6], [None, None, None])
    state.on_pushed("p", 9)
    assert not state.is_new_run("p", [9], [None])
    assert state.last_sequence_id("p") == 9
    state.on_append_failed()
    assert state.is_new_run("p", [0], [None])
