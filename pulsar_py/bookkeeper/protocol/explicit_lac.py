"""Encodes and decodes explicit last add confirmed, WRITE_LAC and READ_LAC of protocol 3 (pure).

An entry bears the last add confirmed (LAC) that its writer knew when it sent the entry, so that of
the last entries nobody else learns that they are confirmed until another one follows. A writer can
tell bookies by a request of its own, with this body:

    offset  bytes  what, in network order
    0       8      ledger id
    8       8      last add confirmed
    16      d      digest of both, as of an entry of the ledger (`digest`)

Bookies keep the body as it is; who reads it verifies the digest. The frames are protobuf messages
behind 4 bytes of their size, and answers bear the number of their request.

Source: BookkeeperProtocol.proto, DigestManager, PerChannelBookieClient in Apache BookKeeper.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError, Message

from pulsar_py.bookkeeper.protocol.digest import EntryDigest
from pulsar_py.bookkeeper.protocol.frames import LENGTH
from pulsar_py.common.errors import CorruptDataError, RemoteProtocolError
from pulsar_py.proto import BookkeeperProtocol_pb2 as pb

_IDS: Final = struct.Struct(">qq")
NOTHING_KNOWN: Final = frozenset({int(pb.ENOLEDGER), int(pb.ENOENTRY)})
"""Statuses of a bookie that has neither an entry of the ledger nor its last add confirmed."""


@dataclass(frozen=True, slots=True)
class LacAnswer:
    """A bookie's answer to either request."""

    number: int
    """That of the request."""
    status: int
    """A `pb.StatusCode`."""
    body: bytes = b""
    """Of a read: what was written last; empty for none."""

    @property
    def status_name(self) -> str:
        """The status as texts name it."""
        known = self.status in pb.StatusCode.values()
        return (
            pb.StatusCode.Name(pb.StatusCode.ValueType(self.status)) if known else str(self.status)
        )


def packed_lac(digest: EntryDigest, ledger_id: int, last_add_confirmed: int) -> bytes:
    """The body that a writer sends."""
    head = _IDS.pack(ledger_id, last_add_confirmed)
    return head + digest.compute(head, ())


def unpacked_lac(digest: EntryDigest, ledger_id: int, body: bytes) -> int:
    """The last add confirmed in a body.

    Raises:
        CorruptDataError: It fails its digest, or is another ledger's.
    """
    name = f"ledger {ledger_id}: explicit last add confirmed"
    expected_bytes = _IDS.size + digest.size_bytes
    if len(body) != expected_bytes:
        raise CorruptDataError(f"{name}: {len(body)} bytes, expected {expected_bytes}")
    head = body[: _IDS.size]
    if digest.compute(head, ()) != body[_IDS.size :]:
        raise CorruptDataError(f"{name}: its digest does not match")
    found_ledger, last_add_confirmed = _IDS.unpack(head)
    if found_ledger != ledger_id:
        raise CorruptDataError(f"{name}: it is that of ledger {found_ledger}")
    return int(last_add_confirmed)


def _framed(message: Message) -> bytes:
    data = message.SerializeToString()
    return LENGTH.pack(len(data)) + data


def write_lac_frame(number: int, ledger_id: int, master_key: bytes, body: bytes) -> bytes:
    """A request that a bookie keep a ledger's last add confirmed."""
    header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=pb.WRITE_LAC, txnId=number)
    # A field that is required, and that bookies do not look at: the body says it.
    request = pb.WriteLacRequest(ledgerId=ledger_id, lac=_IDS.unpack_from(body)[1], body=body)
    request.masterKey = master_key
    return _framed(pb.Request(header=header, writeLacRequest=request))


def read_lac_frame(number: int, ledger_id: int) -> bytes:
    """A request for the last add confirmed that a bookie was told."""
    header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=pb.READ_LAC, txnId=number)
    return _framed(pb.Request(header=header, readLacRequest=pb.ReadLacRequest(ledgerId=ledger_id)))


def decoded_lac_answer(frame: bytes) -> LacAnswer:
    """Read one frame, without its size.

    Raises:
        RemoteProtocolError: It is no answer to these requests.
    """
    try:
        answer = pb.Response.FromString(frame)
    except DecodeError as error:
        raise RemoteProtocolError(f"a bookie's answer can't be read: {error}") from error
    operation = answer.header.operation
    if operation == pb.WRITE_LAC:
        own = answer.writeLacResponse.status
        body = b""
    elif operation == pb.READ_LAC:
        own = answer.readLacResponse.status
        body = answer.readLacResponse.lacBody
    else:
        raise RemoteProtocolError(
            f"a bookie answered operation {operation}, expected WRITE_LAC or READ_LAC"
        )
    status = own if answer.status == pb.EOK else answer.status
    return LacAnswer(answer.header.txnId, status, body)
