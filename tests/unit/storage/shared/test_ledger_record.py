from __future__ import annotations

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.storage.shared.ledger_record import TOMBSTONE, LedgerRecord, digest

FULL = LedgerRecord.created(
    LedgerOptions(
        ensemble_size=3,
        write_quorum_size=2,
        ack_quorum_size=1,
        password=b"secret",
        custom_metadata={"application": b"pulsar", "ü": b""},
    )
).closed(is_fenced=True, last_entry_id=41, length_bytes=10**12)


@pytest.mark.parametrize("record", [LedgerRecord(), FULL, TOMBSTONE])
def test_a_record_is_read_back(record: LedgerRecord) -> None:
    assert LedgerRecord.decode(record.encode()) == record


def test_any_cut_or_longer_record_is_damage() -> None:
    data = FULL.encode()
    for cut in range(len(data)):
        with pytest.raises(CorruptDataError):
            LedgerRecord.decode(data[:cut])
    with pytest.raises(CorruptDataError):
        LedgerRecord.decode(data + b"x")


def test_the_layout_is_the_documented_one() -> None:
    record = LedgerRecord(
        is_closed=True, last_entry_id=2, length_bytes=5, custom_metadata={"k": b"v"}
    )
    assert record.encode().hex(" ") == (
        "01 01 01 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 05 00 "
        "00 01 00 01 6b 00 00 00 01 76"
    )


def test_passwords_are_not_stored() -> None:
    assert b"secret" not in FULL.encode()
    assert FULL.password_digest == digest(b"secret")
    assert digest(b"") == b""


def test_info_shows_the_record() -> None:
    info = FULL.info(7)
    assert (info.ledger_id, info.is_closed) == (7, True)
    assert (info.last_entry_id, info.length_bytes) == (41, 10**12)


def test_the_end_of_an_open_ledger_is_not_said() -> None:
    info = LedgerRecord(last_entry_id=3, length_bytes=9).info(7)
    assert (info.is_closed, info.last_entry_id, info.length_bytes) == (False, None, None)


@pytest.mark.parametrize(
    ("at", "value"),
    [(4, (-2).to_bytes(8, "big", signed=True)), (20, b"\x1f")],
    ids=["an entry before the first", "a digest of another length"],
)
def test_values_that_no_record_has_are_damage(at: int, value: bytes) -> None:
    data = bytearray(FULL.encode())
    data[at : at + len(value)] = value
    if at == 20:
        del data[21]  # so that it is as long as it says
    with pytest.raises(CorruptDataError):
        LedgerRecord.decode(bytes(data))


def test_an_open_ledger_can_be_neither_fenced_nor_deleted() -> None:
    for record in (LedgerRecord(is_fenced=True), LedgerRecord(is_deleted=True)):
        with pytest.raises(AssertionError):
            record.encode()
