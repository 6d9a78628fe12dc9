from __future__ import annotations

import pytest

from pulsar_py.bookkeeper.protocol.digest import EntryDigest, master_key
from pulsar_py.bookkeeper.protocol.explicit_lac import (
    NOTHING_KNOWN,
    decoded_lac_answer,
    packed_lac,
    read_lac_frame,
    unpacked_lac,
    write_lac_frame,
)
from pulsar_py.bookkeeper.protocol.frames import LENGTH
from pulsar_py.common.errors import CorruptDataError, RemoteProtocolError
from pulsar_py.ledgers.store import DigestType
from pulsar_py.proto import BookkeeperProtocol_pb2 as pb
from tests.unit.bookkeeper.recorded import RECORDED

SAID = {each["name"]: each for each in RECORDED["explicit_lac"]}
DIGEST = EntryDigest(DigestType.CRC32C, b"")
LEDGER = 27


def recorded(name: str, side: str) -> bytes:
    return bytes.fromhex(SAID[name][side])


def test_requests_are_those_that_a_bookie_took() -> None:
    body = packed_lac(DIGEST, LEDGER, 1)
    frame = write_lac_frame(8, LEDGER, master_key(b""), body)
    assert frame[LENGTH.size :] == recorded("v3 write lac", "request")
    assert LENGTH.unpack_from(frame) == (len(frame) - LENGTH.size,)
    assert read_lac_frame(7, LEDGER)[LENGTH.size :] == recorded("v3 read lac", "request")


def test_a_bookie_gives_back_what_it_was_told() -> None:
    told = decoded_lac_answer(recorded("v3 write lac", "answer"))
    assert (told.number, told.status, told.body) == (8, pb.EOK, b"")
    found = decoded_lac_answer(recorded("v3 read lac after write lac", "answer"))
    assert found.number == 9
    assert unpacked_lac(DIGEST, LEDGER, found.body) == 1


def test_a_bookie_that_was_told_nothing_has_no_body() -> None:
    assert decoded_lac_answer(recorded("v3 read lac", "answer")).body == b""
    unknown = decoded_lac_answer(recorded("v3 read lac of an unknown ledger", "answer"))
    assert unknown.status in NOTHING_KNOWN
    assert unknown.status_name == "ENOENTRY"


@pytest.mark.parametrize("digest_type", DigestType)
def test_each_digest_comes_back(digest_type: DigestType) -> None:
    digest = EntryDigest(digest_type, b"secret")
    body = packed_lac(digest, 2**40, 2**33)
    assert unpacked_lac(digest, 2**40, body) == 2**33


def test_what_is_damaged_or_of_another_ledger_is_refused() -> None:
    body = packed_lac(DIGEST, LEDGER, 5)
    with pytest.raises(CorruptDataError, match="19 bytes, expected 20"):
        unpacked_lac(DIGEST, LEDGER, body[:-1])
    with pytest.raises(CorruptDataError, match="its digest does not match"):
        unpacked_lac(DIGEST, LEDGER, body[:-1] + bytes([body[-1] ^ 1]))
    with pytest.raises(CorruptDataError, match="it is that of ledger 27"):
        unpacked_lac(DIGEST, 28, body)


def test_what_is_no_answer_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="can't be read"):
        decoded_lac_answer(b"\xff")
    header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=pb.ADD_ENTRY, txnId=1)
    other = pb.Response(header=header, status=pb.EOK).SerializeToString()
    with pytest.raises(RemoteProtocolError, match="answered operation 2"):
        decoded_lac_answer(other)
    unread = pb.Response(
        header=pb.BKPacketHeader(version=pb.VERSION_THREE, operation=pb.READ_LAC, txnId=1),
        status=pb.EUA,
    )
    assert decoded_lac_answer(unread.SerializeToString()).status_name == "EUA"
