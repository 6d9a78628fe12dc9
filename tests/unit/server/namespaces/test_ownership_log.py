from __future__ import annotations

from pulsar_py.server.namespaces.ownership_log import (
    LOST,
    MAX_CHANGES,
    TAKEN,
    UNLOADED,
    OwnershipLog,
)


def test_it_says_since_when_and_why() -> None:
    log = OwnershipLog()
    log.gained("t/n/a", TAKEN, now_millis=5)
    log.gained("t/n/a", TAKEN, now_millis=6)
    log.gained("t/n/b", TAKEN, now_millis=7)
    assert log.since_millis == {"t/n/a": 5, "t/n/b": 7}
    log.lost("t/n/a", LOST, now_millis=9)
    log.lost("t/n/a", UNLOADED, now_millis=10)
    assert log.since_millis == {"t/n/b": 7}
    assert [(each.at_millis, each.bundle, each.is_gain, each.reason) for each in log.changes] == [
        (5, "t/n/a", True, TAKEN),
        (7, "t/n/b", True, TAKEN),
        (9, "t/n/a", False, LOST),
    ]
    assert log.counts == {(True, TAKEN): 2, (False, LOST): 1}


def test_changes_are_bounded_and_counts_are_not() -> None:
    log = OwnershipLog()
    for number in range(MAX_CHANGES):
        log.gained("t/n/a", TAKEN, now_millis=number)
        log.lost("t/n/a", UNLOADED, now_millis=number)
    assert len(log.changes) == MAX_CHANGES
    assert log.counts[True, TAKEN] == MAX_CHANGES
