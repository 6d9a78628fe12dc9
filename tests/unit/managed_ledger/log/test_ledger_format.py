"""The stored form of a managed ledger: fields as in Pulsar, foreign ones kept."""

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.ledger_format import (
    LedgerList,
    LedgerRecord,
    cursor_path,
    decode_ledger_list,
    decode_name,
    decode_unchecked,
    encode_ledger_list,
    encode_name,
    is_deletion_begun,
    ledger_path,
)
from pulsar_py.proto.MLDataFormats_pb2 import (
    ManagedLedgerInfo,
)


def test_the_open_ledger_has_neither_entries_nor_size():
    stored = LedgerList(
        [LedgerRecord(5, 3, 30, 1000, is_closed=True), LedgerRecord(7, 2, 20)],
        Position(7, 1),
        {"a": "b"},
    )
    info = ManagedLedgerInfo.FromString(encode_ledger_list(stored))
    closed, last = info.ledgerInfo
    assert (closed.ledgerId, closed.entries, closed.size, closed.timestamp) == (5, 3, 30, 1000)
    assert last.ledgerId == 7
    assert not last.HasField("entries")
    assert not last.HasField("timestamp")
    again = decode_ledger_list(info.SerializeToString())
    assert [record.ledger_id for record in again.ledgers] == [5, 7]
    assert [record.is_closed for record in again.ledgers] == [True, False]
    assert (again.terminated_position, again.properties) == (Position(7, 1), {"a": "b"})


def test_what_is_known_of_offloading_is_kept():
    info = ManagedLedgerInfo()
    ledger = info.ledgerInfo.add(ledgerId=5, entries=3, size=30, timestamp=9)
    ledger.offloadContext.uidMsb = 17
    ledger.properties.add(key="k", value="v")
    again = encode_ledger_list(decode_ledger_list(info.SerializeToString()))
    assert ManagedLedgerInfo.FromString(again) == info


def test_a_value_that_makes_no_sense_is_refused():
    with pytest.raises(CorruptDataError):
        decode_ledger_list(b"\xff\xff")


@pytest.mark.parametrize("ids", [(3, 5, 4), (3, 3)])
def test_ids_that_do_not_ascend_are_refused(ids):
    value = encode_ledger_list(LedgerList([LedgerRecord(each) for each in ids]))
    with pytest.raises(CorruptDataError, match=f"names ledger {ids[-1]} after ledger {ids[-2]}"):
        decode_ledger_list(value)
    assert [record.ledger_id for record in decode_unchecked(value).ledgers] == list(ids)


def test_paths_are_pulsars():
    assert ledger_path("t/n/persistent/x") == "/managed-ledgers/t/n/persistent/x"
    assert cursor_path("t/n/persistent/x", "a b/c~*") == (
        "/managed-ledgers/t/n/persistent/x/a+b%2Fc%7E*"
    )
    for name in ("a b", "ü%2F", "+", "~"):
        assert decode_name(encode_name(name)) == name


def test_a_list_that_is_being_deleted_says_so_and_keeps_its_properties():
    stored = LedgerList([LedgerRecord(3)], properties={"a": "1"}, is_being_deleted=True)
    value = encode_ledger_list(stored)
    assert is_deletion_begun(value)
    found = decode_ledger_list(value)
    assert (found.is_being_deleted, found.properties) == (True, {"a": "1"})
    assert not is_deletion_begun(encode_ledger_list(LedgerList([LedgerRecord(3)])))
