from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pulsar_py.bookkeeper.metadata.ledger_metadata import (
    LedgerMetadata,
    LedgerSegment,
    LedgerStatus,
    decode,
    encode,
    write_set,
)
from pulsar_py.common.errors import CorruptDataError, FormatVersionError
from pulsar_py.ledgers.store import DigestType, LedgerOptions
from tests.unit.bookkeeper.recorded import RECORDED

HEADER = b"BookieMetadataFormatVersion\t"


@pytest.mark.parametrize("each", RECORDED["ledger_metadata"], ids=lambda each: each["name"])
def test_recorded_values_are_read_and_written_back(each: dict[str, Any]) -> None:
    value, fields = bytes.fromhex(each["value"]), each["fields"]
    found = decode("/l", value)

    assert found == LedgerMetadata(
        ensemble_size=fields["ensembleSize"],
        write_quorum_size=fields["quorumSize"],
        ack_quorum_size=fields["ackQuorumSize"],
        segments=tuple(LedgerSegment(first, tuple(ids)) for first, ids in fields["segments"]),
        status=LedgerStatus[fields["state"]],
        last_entry_id=fields["lastEntryId"],
        length_bytes=fields["length"],
        digest_type=DigestType[fields["digestType"]],
        password=fields["password"].encode(),
        custom_metadata={key: text.encode() for key, text in fields["customMetadata"].items()},
        created_millis=fields["ctime"],
        creation_token=fields["cToken"],
    )
    assert encode(found) == value


SEGMENTS = (LedgerSegment(0, ("a:1", "b:1", "c:1")), LedgerSegment(10, ("a:1", "d:1", "c:1")))
METADATA = LedgerMetadata(
    ensemble_size=3, write_quorum_size=2, ack_quorum_size=2, segments=SEGMENTS
)  # fmt: skip


def test_version_2_is_the_message_as_text() -> None:
    text = b"""quorumSize: 2
ensembleSize: 3
length: 700
lastEntryId: 12
state: CLOSED
segment { ensembleMember: "a:1" ensembleMember: "b:1" ensembleMember: "c:1" firstEntryId: 0 }
digestType: HMAC
password: "secret"
"""
    found = decode("/l", HEADER + b"2\n" + text)
    assert (found.status, found.last_entry_id, found.length_bytes) == (
        LedgerStatus.CLOSED, 12, 700,
    )  # fmt: skip
    assert found.ack_quorum_size == found.write_quorum_size == 2
    assert (found.digest_type, found.password) == (DigestType.HMAC, b"secret")
    assert found.segments == SEGMENTS[:1]


@pytest.mark.parametrize(
    ("end", "status", "last_entry_id"),
    [
        (b"", LedgerStatus.OPEN, -1),
        (b"-102\tCLOSED\n", LedgerStatus.IN_RECOVERY, -1),
        (b"12\tCLOSED", LedgerStatus.CLOSED, 12),
    ],
)
def test_version_1_is_lines(end: bytes, status: LedgerStatus, last_entry_id: int) -> None:
    lines = b"2\n3\n700\n0\ta:1\tb:1\tc:1\n10\ta:1\td:1\tc:1\n"
    found = decode("/l", HEADER + b"1\n" + lines + end)
    assert (found.status, found.last_entry_id) == (status, last_entry_id)
    assert (found.write_quorum_size, found.ensemble_size, found.length_bytes) == (2, 3, 700)
    assert found.segments == SEGMENTS
    assert found.password is None


def test_an_unknown_version_is_named() -> None:
    with pytest.raises(FormatVersionError, match="version 4"):
        decode("/l", HEADER + b"4\n")


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{}",
        HEADER + b"3\n",
        HEADER + b"3\n\x05ab",
        HEADER + b"3\n\x80\x80\x80\x80\x80\x80\x01",
        HEADER + b"3\n\x02\xff\xff",
        HEADER + b"2\nquorumSize: ",
        HEADER + b"1\n2\n3\n",
        HEADER + b"1\n2\n3\nx\n",
    ],
)
def test_what_makes_no_sense_is_refused(value: bytes) -> None:
    with pytest.raises(CorruptDataError, match="/l"):
        decode("/l", value)


@pytest.mark.parametrize(
    ("quorums", "segments"),
    [
        ((3, 2, 3), SEGMENTS),
        ((3, 4, 2), SEGMENTS),
        ((3, 2, 0), SEGMENTS),
        ((2, 2, 2), SEGMENTS),
        ((3, 2, 2), ()),
        ((3, 2, 2), SEGMENTS[1:]),
        ((3, 2, 2), SEGMENTS[::-1]),
        ((3, 2, 2), SEGMENTS[:1] * 2),
    ],
)
def test_numbers_that_contradict_each_other_are_refused(
    quorums: tuple[int, int, int], segments: tuple[LedgerSegment, ...]
) -> None:
    ensemble_size, write_quorum_size, ack_quorum_size = quorums
    wrong = LedgerMetadata(
        ensemble_size=ensemble_size, write_quorum_size=write_quorum_size,
        ack_quorum_size=ack_quorum_size, segments=segments,
    )  # fmt: skip
    with pytest.raises(CorruptDataError, match="a ledger's metadata has"):
        decode("/l", encode(wrong))


def test_entries_lie_round_robin_on_the_bookies_of_their_segment() -> None:
    assert [write_set(entry_id, 3, 2) for entry_id in range(4)] == [(0, 1), (1, 2), (2, 0), (0, 1)]
    assert METADATA.ensemble_at(9) == ("a:1", "b:1", "c:1")
    assert METADATA.ensemble_at(10) == METADATA.ensemble_at(999) == ("a:1", "d:1", "c:1")


def test_another_ensemble_is_a_new_segment_or_replaces_the_one_that_begins_there() -> None:
    assert METADATA.with_ensemble(12, ("x", "y", "z")).segments == (
        *SEGMENTS, LedgerSegment(12, ("x", "y", "z")),
    )  # fmt: skip
    assert METADATA.with_ensemble(10, ("x", "y", "z")).segments == (
        SEGMENTS[0], LedgerSegment(10, ("x", "y", "z")),
    )  # fmt: skip


def test_a_new_ledger_is_open_and_has_one_segment() -> None:
    options = LedgerOptions(
        ensemble_size=3, write_quorum_size=3, ack_quorum_size=2, custom_metadata={"a": b"1"}
    )
    new = LedgerMetadata.new(options, ["a:1", "b:1", "c:1"])
    assert new.status is LedgerStatus.OPEN
    assert new.segments == SEGMENTS[:1]
    assert new.digest_type is DigestType.CRC32C
    assert decode("/l", encode(new)) == new
    closed = new.in_recovery().closed(4, 50)
    assert closed.is_closed
    assert decode("/l", encode(closed)) == closed


@pytest.mark.parametrize("status", LedgerStatus)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_change_is_written_in_the_version_that_was_read(
    version: int, status: LedgerStatus
) -> None:
    lines = b"2\n3\n0\n0\ta:1\tb:1\tc:1"
    read = decode("/l", HEADER + b"1\n" + lines)
    assert encode(read) == HEADER + b"1\n" + lines
    if version > 1:
        read = decode("/l", encode(replace(read, format_version=version, password=b"p")))
    changed = replace(read.with_ensemble(10, ("a:1", "d:1", "c:1")), status=status)
    if status is LedgerStatus.CLOSED:
        changed = changed.closed(12, 700)
    value = encode(changed)
    assert value.startswith(HEADER + b"%d\n" % version)
    assert decode("/l", value) == changed
