from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.bookkeeper.protocol.digest import EntryDigest
from pulsar_py.bookkeeper.protocol.entry_format import (
    LAST_ENTRY,
    BookieEntry,
    packed_head,
    packed_heads,
    unpacked,
)
from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.packed_entries import LENT_BYTES
from pulsar_py.ledgers.store import DigestType
from tests.unit.bookkeeper.recorded import ENTRIES

CRC32C = EntryDigest(DigestType.CRC32C, b"")


def packed(entry_id: int, payload: bytes, *, ledger_id: int = 7) -> bytes:
    head = packed_head(
        CRC32C, ledger_id=ledger_id, entry_id=entry_id, last_add_confirmed=3,
        length_bytes=99, pieces=(payload,),
    )  # fmt: skip
    return head + payload


@pytest.mark.parametrize("each", ENTRIES, ids=str)
def test_entries_are_packed_and_unpacked_as_recorded(each: dict[str, Any]) -> None:
    digest = EntryDigest(DigestType[each["digest_type"]], each["password"].encode())
    payload = bytes.fromhex(each["payload"])
    head = packed_head(
        digest, ledger_id=each["ledger"], entry_id=each["entry"],
        last_add_confirmed=each["lac"], length_bytes=each["length"], pieces=(payload,),
    )  # fmt: skip

    assert (head + payload).hex() == each["stored"]
    for asked in (each["entry"], LAST_ENTRY):
        found = unpacked(digest, each["ledger"], asked, bytes.fromhex(each["stored"]))
        assert found == BookieEntry(each["entry"], each["lac"], each["length"], payload)


@pytest.mark.parametrize("digest_type", DigestType)
def test_entries_of_a_run_are_packed_as_each_alone(digest_type: DigestType) -> None:
    digest = EntryDigest(digest_type, b"word")
    payloads, lengths = [b"", b"abc", bytes(1000)], [40, 43, 1043]
    heads, digests = packed_heads(
        digest, ledger_id=7, first_entry_id=5, last_add_confirmed=3,
        lengths_bytes=lengths, payloads=payloads,
    )  # fmt: skip

    assert [head + digest for head, digest in zip(heads, digests, strict=True)] == [
        packed_head(
            digest, ledger_id=7, entry_id=entry_id, last_add_confirmed=3,
            length_bytes=length, pieces=(payload,),
        )
        for entry_id, length, payload in zip((5, 6, 7), lengths, payloads, strict=True)
    ]  # fmt: skip


def test_every_bit_counts() -> None:
    whole = packed(5, b"abc")
    for at in range(len(whole)):
        broken = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        with pytest.raises(CorruptDataError, match="ledger 7: entry 5: its digest"):
            unpacked(CRC32C, 7, 5, broken)


@pytest.mark.parametrize("size", [0, 31, 35])
def test_a_torn_entry_is_refused(size: int) -> None:
    with pytest.raises(CorruptDataError):
        unpacked(CRC32C, 7, 5, packed(5, b"")[:size])


def test_another_entry_is_refused_although_it_is_whole() -> None:
    with pytest.raises(CorruptDataError, match="it says that it is 7:6"):
        unpacked(CRC32C, 7, 5, packed(6, b"abc"))
    with pytest.raises(CorruptDataError, match="it says that it is 8:5"):
        unpacked(CRC32C, 7, LAST_ENTRY, packed(5, b"abc", ledger_id=8))


def test_a_large_payload_is_not_copied() -> None:
    found = unpacked(CRC32C, 7, 5, packed(5, bytes(LENT_BYTES)))
    assert isinstance(found.payload, memoryview)
    assert found.payload.readonly
    assert found.payload == bytes(LENT_BYTES)
