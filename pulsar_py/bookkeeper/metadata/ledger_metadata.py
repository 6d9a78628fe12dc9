r"""`LedgerMetadata`: a ledger's ensembles, quorums and last entry, and their format (pure).

    BookieMetadataFormatVersion \t version \n     then
    3    size as a varint, `LedgerMetadataFormat` (proto/DataFormats.proto) in binary
    2    the same message as text
    1    lines: write quorum, ensemble size, length, a line a segment (`first entry \t bookie...`),
         and at the end of a closed one `last entry \t CLOSED`, -102 for one in recovery

All three are read. A new record is written in 3, a change in the version that was read, so that
programs that read the ledger before still do.

From a segment's first entry up to that of the next one, entry `e` lies on the bookies
`(e + i) mod ensemble size` of the segment, i from 0 to the write quorum.

What always holds: segments have ascending first entries, the first of them 0, and as many bookies
as the ensemble size says; 1 <= ack quorum <= write quorum <= ensemble size.

Source: LedgerMetadataSerDe, LedgerMetadata in Apache BookKeeper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from pulsar_py.common.errors import CorruptDataError, FormatVersionError
from pulsar_py.common.varint import varint
from pulsar_py.ledgers.store import DigestType, LedgerOptions
from pulsar_py.proto.DataFormats_pb2 import LedgerMetadataFormat

_HEADER: Final = b"BookieMetadataFormatVersion\t"
_VERSION: Final = 3
_CLOSED_WORD: Final = "CLOSED"
_IN_RECOVERY_MARK: Final = -102
_VARINT_BYTES: Final = 5


class LedgerStatus(Enum):
    """The state of a ledger; values as in BookKeeper's metadata."""

    OPEN = 1
    IN_RECOVERY = 2
    CLOSED = 3


@dataclass(frozen=True, slots=True)
class LedgerSegment:
    """The ensemble of the entries from `first_entry_id` on."""

    first_entry_id: int
    bookie_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerMetadata:
    """One version of a ledger's metadata."""

    ensemble_size: int
    write_quorum_size: int
    ack_quorum_size: int
    segments: tuple[LedgerSegment, ...]
    status: LedgerStatus = LedgerStatus.OPEN
    last_entry_id: int = -1
    """Counts once it is closed."""
    length_bytes: int = 0
    """Counts once it is closed."""
    digest_type: DigestType = DigestType.CRC32
    password: bytes | None = b""
    """None where version 1 does not say."""
    custom_metadata: Mapping[str, bytes] = field(default_factory=dict)
    created_millis: int | None = None
    creation_token: int | None = None
    format_version: int = 3
    """In which it was read, and is written again."""

    @classmethod
    def new(cls, options: LedgerOptions, bookie_ids: Sequence[str]) -> LedgerMetadata:
        """The metadata of a new ledger on these bookies."""
        return cls(
            ensemble_size=options.ensemble_size,
            write_quorum_size=options.write_quorum_size,
            ack_quorum_size=options.ack_quorum_size,
            segments=(LedgerSegment(0, tuple(bookie_ids)),),
            digest_type=options.digest_type,
            password=options.password,
            custom_metadata=dict(options.custom_metadata),
            creation_token=0,
        )

    @property
    def is_closed(self) -> bool:
        """Whether the ledger is closed: its last entry is recorded."""
        return self.status is LedgerStatus.CLOSED

    @property
    def last_segment(self) -> LedgerSegment:
        """The segment that new entries go to."""
        return self.segments[-1]

    def ensemble_at(self, entry_id: int) -> tuple[str, ...]:
        """The ensemble of an entry."""
        return next(
            segment.bookie_ids
            for segment in reversed(self.segments)
            if segment.first_entry_id <= entry_id
        )

    def write_set(self, entry_id: int) -> tuple[int, ...]:
        """The indexes in the ensemble of the bookies of an entry, the first to ask first."""
        return write_set(entry_id, self.ensemble_size, self.write_quorum_size)

    def in_recovery(self) -> LedgerMetadata:
        """A copy in recovery: its writer can't record other ensembles any more."""
        return replace(self, status=LedgerStatus.IN_RECOVERY)

    def closed(self, last_entry_id: int, length_bytes: int) -> LedgerMetadata:
        """A copy that is closed at this entry."""
        return replace(
            self, status=LedgerStatus.CLOSED, last_entry_id=last_entry_id, length_bytes=length_bytes
        )

    def with_ensemble(self, first_entry_id: int, bookie_ids: Sequence[str]) -> LedgerMetadata:
        """A copy with other bookies from an entry on; no segment may begin after that entry."""
        kept = [each for each in self.segments if each.first_entry_id < first_entry_id]
        assert len(self.segments) - len(kept) <= 1
        segments = (*kept, LedgerSegment(first_entry_id, tuple(bookie_ids)))
        return replace(self, segments=segments)

    def check(self) -> str | None:
        """What is inconsistent in it, for people; None if nothing is."""
        if not 1 <= self.ack_quorum_size <= self.write_quorum_size <= self.ensemble_size:
            return (
                f"an ensemble of {self.ensemble_size}, a write quorum of {self.write_quorum_size} "
                f"and an ack quorum of {self.ack_quorum_size}"
            )
        firsts = [segment.first_entry_id for segment in self.segments]
        if not firsts or firsts[0] != 0 or firsts != sorted(set(firsts)):
            return f"segments that begin at {firsts}"
        sizes = {len(segment.bookie_ids) for segment in self.segments}
        if sizes != {self.ensemble_size}:
            return f"segments of {sorted(sizes)} bookies, an ensemble has {self.ensemble_size}"
        return None


def write_set(entry_id: int, ensemble_size: int, write_quorum_size: int) -> tuple[int, ...]:
    """The indexes in the ensemble of the bookies that have an entry, round-robin."""
    return tuple((entry_id + i) % ensemble_size for i in range(write_quorum_size))


def encode(metadata: LedgerMetadata) -> bytes:
    """The value to be stored."""
    header = b"%s%d\n" % (_HEADER, metadata.format_version)
    match metadata.format_version:
        case 1:
            return header + _to_lines(metadata).encode()
        case 2:
            return header + text_format.MessageToString(_to_message(metadata)).encode()
        case _:
            body = _to_message(metadata).SerializeToString()
            return b"%s%s%s" % (header, varint(len(body)), body)


def _to_message(metadata: LedgerMetadata) -> LedgerMetadataFormat:
    message = LedgerMetadataFormat(
        quorumSize=metadata.write_quorum_size,
        ensembleSize=metadata.ensemble_size,
        ackQuorumSize=metadata.ack_quorum_size,
        length=metadata.length_bytes,
        lastEntryId=metadata.last_entry_id,
        state=LedgerMetadataFormat.State.ValueType(metadata.status.value),
        digestType=LedgerMetadataFormat.DigestType.ValueType(metadata.digest_type.value),
    )
    if metadata.password is not None:
        message.password = metadata.password
    if metadata.created_millis is not None:
        message.ctime = metadata.created_millis
    if metadata.creation_token is not None:
        message.cToken = metadata.creation_token
    for segment in metadata.segments:
        message.segment.add(ensembleMember=segment.bookie_ids, firstEntryId=segment.first_entry_id)
    for key, value in metadata.custom_metadata.items():
        message.customMetadata.add(key=key, value=value)
    return message


def decode(path: str, value: bytes) -> LedgerMetadata:
    """Read a value of any version; `path` is for the message.

    Raises:
        FormatVersionError: It is of a version unknown here.
        CorruptDataError: It is no metadata of a ledger, or inconsistent.
    """
    line, _, rest = value.partition(b"\n")
    if not line.startswith(_HEADER):
        raise CorruptDataError(f"{path}: no ledger's metadata, it begins with {value[:40]!r}")
    version = line[len(_HEADER) :].decode("ascii", "replace")
    try:
        match version:
            case "3":
                metadata = _from_message(LedgerMetadataFormat.FromString(_delimited(rest)))
            case "2":
                message = text_format.Parse(rest.decode(), LedgerMetadataFormat())
                metadata = replace(_from_message(message), format_version=2)
            case "1":
                metadata = _from_lines(rest.decode())
            case _:
                raise FormatVersionError(path, "a ledger's metadata", version, _VERSION)
    except (DecodeError, text_format.ParseError, ValueError, IndexError) as error:
        raise CorruptDataError(f"{path}: a ledger's metadata can't be read: {error}") from error
    wrong = metadata.check()
    if wrong is not None:
        raise CorruptDataError(f"{path}: a ledger's metadata has {wrong}")
    return metadata


def _delimited(data: bytes) -> bytes:
    """The bytes that follow a varint with their length."""
    size = shift = 0
    for at in range(_VARINT_BYTES):
        size |= (data[at] & 0x7F) << shift
        shift += 7
        if data[at] < 0x80:  # noqa: PLR2004 - the bit that says that more follows
            body = data[at + 1 :]
            if len(body) < size:
                raise ValueError(f"{len(body)} bytes of {size}")
            return body[:size]
    raise ValueError("its size has no end")


def _from_message(message: LedgerMetadataFormat) -> LedgerMetadata:
    has_digest = message.HasField("digestType")
    return LedgerMetadata(
        ensemble_size=message.ensembleSize,
        write_quorum_size=message.quorumSize,
        ack_quorum_size=(
            message.ackQuorumSize if message.HasField("ackQuorumSize") else message.quorumSize
        ),
        segments=tuple(
            LedgerSegment(segment.firstEntryId, tuple(segment.ensembleMember))
            for segment in message.segment
        ),
        status=LedgerStatus(message.state),
        last_entry_id=message.lastEntryId if message.HasField("lastEntryId") else -1,
        length_bytes=message.length,
        digest_type=DigestType(message.digestType) if has_digest else DigestType.CRC32,
        password=message.password if message.HasField("password") else None,
        custom_metadata={entry.key: entry.value for entry in message.customMetadata},
        created_millis=message.ctime if message.HasField("ctime") else None,
        creation_token=message.cToken if message.HasField("cToken") else None,
    )


def _from_lines(text: str) -> LedgerMetadata:
    quorum, ensemble, length, *rest = text.splitlines()
    segments: list[LedgerSegment] = []
    status, last_entry_id = LedgerStatus.OPEN, -1
    for line in rest:
        number, *words = line.split("\t")
        if words == [_CLOSED_WORD]:
            is_closed = int(number) != _IN_RECOVERY_MARK
            status = LedgerStatus.CLOSED if is_closed else LedgerStatus.IN_RECOVERY
            last_entry_id = int(number) if is_closed else -1
            break
        segments.append(LedgerSegment(int(number), tuple(words)))
    return LedgerMetadata(
        ensemble_size=int(ensemble),
        write_quorum_size=int(quorum),
        ack_quorum_size=int(quorum),
        segments=tuple(segments),
        status=status,
        last_entry_id=last_entry_id,
        length_bytes=int(length),
        password=None,
        format_version=1,
    )


def _to_lines(metadata: LedgerMetadata) -> str:
    """The text of version 1; fields that this version lacks are left out."""
    numbers = (metadata.write_quorum_size, metadata.ensemble_size, metadata.length_bytes)
    lines = [str(each) for each in numbers]
    lines += ["\t".join((str(each.first_entry_id), *each.bookie_ids)) for each in metadata.segments]
    if metadata.status is LedgerStatus.IN_RECOVERY:
        lines.append(f"{_IN_RECOVERY_MARK}\t{_CLOSED_WORD}")
    elif metadata.is_closed:
        lines.append(f"{metadata.last_entry_id}\t{_CLOSED_WORD}")
    return "\n".join(lines)
