"""Topics and cursors against ledgers."""

from __future__ import annotations

import pytest

from pulsar_py.common.findings import Severity
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import CursorSnapshot, encode_cursor_record
from pulsar_py.managed_ledger.inspection import (
    Topics,
    check_topics,
    expected_ends,
    read_cursors,
    read_topics,
)
from pulsar_py.managed_ledger.log.ledger_format import (
    LedgerList,
    LedgerRecord,
    cursor_path,
    encode_ledger_list,
    ledger_path,
)
from pulsar_py.storage.shared.ledger_record import LedgerRecord as Record
from pulsar_py.testing.ledger_store import SimulatedLedgerStore

NAME = "public/default/persistent/topic"


def topic_record(*ledgers: tuple[int, int | None], end: Position | None = None) -> bytes:
    """Ledgers by id and count of entries, None for an open one."""
    records = [
        LedgerRecord(key, count or 0, 1, 1, is_closed=count is not None) for key, count in ledgers
    ]
    return encode_ledger_list(LedgerList(records, terminated_position=end))


def cursor_record(position: Position, ledger_id: int = -1) -> bytes:
    state = CursorSnapshot(position)
    state.individual_deleted_messages.add_range(position.ledger_id, position.entry_id + 2, 8)
    return encode_cursor_record(state, {}, cursor_ledger_id=ledger_id, max_ranges=99).data


def keys(ledger_id: int = -1) -> dict[str, bytes]:
    return {
        "/admin/policies/public": b"{}",
        ledger_path(NAME): topic_record((3, 10), (5, None)),
        cursor_path(NAME, "a b"): cursor_record(Position(5, 4), ledger_id),
    }


def problems(found: Topics, last_entries: dict[int, int]) -> list[str]:
    return [each.problem for each in (*found.findings, *check_topics(found, last_entries, {}))]


def test_what_fits_has_no_findings() -> None:
    found = read_topics(keys())
    assert found.topics[NAME].cursors.keys() == {"a b"}
    assert problems(found, {3: 9, 5: 20}) == []
    assert expected_ends(found) == {3: 9, 5: 8}


def test_ledgers_that_are_missing_or_short_are_named() -> None:
    found = read_topics(keys(ledger_id=7))
    assert problems(found, {5: 2}) == [
        f"/managed-ledgers/{NAME}: ledger 3 is missing",
        f"/managed-ledgers/{NAME}: ledger 5 should go to 4, it goes to 2",
        f"/managed-ledgers/{NAME}/a+b: cursor ledger 7 is missing",
    ]
    assert expected_ends(found)[7] == -1


def test_ledgers_that_cursors_own_are_referred_to() -> None:
    snapshot = CursorSnapshot(Position(5, 3), properties={"CompactedTopicLedger": 20})
    own = {
        "#pulsar.internal.compacting-ledger": "21",
        "#pulsar.internal.delayed.bucket_5_6": "22",
        "#pulsar.internal.pulsar-py.sequence-id-ledgers": "23,24",
    }
    record = encode_cursor_record(snapshot, own).data
    found = read_topics(keys() | {cursor_path(NAME, "__compaction"): record})
    assert expected_ends(found).keys() == {3, 5, 20, 21, 22, 23, 24}


def test_an_empty_ledger_that_holds_a_place_need_not_be_there() -> None:
    found = read_topics({ledger_path(NAME): topic_record((3, 10), (5, 0))})
    assert problems(found, {3: 9}) == []


def test_a_terminated_topic_goes_to_its_end() -> None:
    found = read_topics({ledger_path(NAME): topic_record((3, None), end=Position(3, 6))})
    assert expected_ends(found) == {3: 6}


def test_numbers_that_can_not_be_are_not_believed() -> None:
    record = topic_record((3, 1 << 60), (4, None))
    cursor = cursor_record(Position(4, 1 << 50))
    found = read_topics({ledger_path(NAME): record, cursor_path(NAME, "c"): cursor})
    assert expected_ends(found) == {4: -1}


def test_values_that_make_no_sense_are_named() -> None:
    broken = keys() | {ledger_path(NAME): b"\xff\xff"}
    found = read_topics(broken)
    assert found.broken_keys == [ledger_path(NAME), cursor_path(NAME, "a b")]
    broken = keys() | {cursor_path(NAME, "a b"): b"\xff\xff"}
    found = read_topics(broken)
    assert found.broken_keys == [cursor_path(NAME, "a b")]
    assert "can't be read" in found.findings[0].problem


def test_ids_that_do_not_ascend_and_ledgers_of_two_topics_are_named() -> None:
    other = "public/default/persistent/other"
    found = read_topics(
        {
            ledger_path(NAME): topic_record((3, 10), (2, 10), (5, 10), (5, None)),
            ledger_path(other): topic_record((2, 10), (6, None)),
        }
    )
    assert problems(found, dict.fromkeys((2, 3, 5, 6), 9)) == [
        f"/managed-ledgers/{NAME}: ledger 2 is named after ledger 3",
        f"/managed-ledgers/{NAME}: ledger 5 is named after ledger 5",
        f"/managed-ledgers/{NAME}: ledger 2 is named by /managed-ledgers/{other} too",
    ]


@pytest.mark.parametrize(
    ("count", "size", "severity"),
    [
        (10, 900, None),
        (9, 900, Severity.DAMAGE),
        (9, 901, Severity.DAMAGE),
        (0, 900, Severity.DAMAGE),
        (1 << 40, 900, Severity.DAMAGE),
        (10, 901, Severity.NOTE),
        (9, 850, Severity.NOTE),
    ],
)
def test_a_closed_ledger_unlike_its_own_record(
    count: int, size: int, severity: Severity | None
) -> None:
    records = [LedgerRecord(3, count, size, 1, is_closed=True), LedgerRecord(5)]
    found = read_topics({ledger_path(NAME): encode_ledger_list(LedgerList(records))})
    info = Record(is_closed=True, last_entry_id=9, length_bytes=900).info(3)
    text = f"should have {count} entries of {size} bytes, it has 10 of 900"
    expected = f"metadata.sqlite: /managed-ledgers/{NAME}: ledger 3 {text}"
    findings = check_topics(found, {3: 9, 5: -1}, {3: info})
    assert [(str(each), each.severity) for each in findings] == (
        [(expected, severity)] if severity else []
    )


async def test_cursors_are_read_as_a_broker_does() -> None:
    content = keys()
    found = read_topics(content)
    store = SimulatedLedgerStore()
    await read_cursors(found, content, store, SystemClock())
    state = found.topics[NAME].states["a b"]
    assert state.mark_delete_position == Position(5, 4)
    assert list(state.individual_deleted_messages.ranges()) == [(5, 6, 8)]
