"""Packs and unpacks entries in the form that bookies store (pure).

    offset  bytes  what, in network order
    0       8      ledger id
    8       8      entry id
    16      8      last add confirmed: the writer's when it sent this entry, -1 at first
    24      8      bytes of the payloads of all entries up to this one
    32      d      digest of what stands before it and of the payload (`digest`)
    32+d           payload, of any size

Bookies look at ledger id, entry id and last add confirmed alone. It is the reader who verifies the
digest, and takes an entry that fails it, or bears other ids, for the failure of that replica. The
last add confirmed may be greater than the entry's own id: who copies an entry to another bookie
writes the one that it knows.

Source: DigestManager in Apache BookKeeper.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pulsar_py.bookkeeper.protocol.digest import EntryDigest
from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.packed_entries import LENT_BYTES

_HEAD: Final = struct.Struct(">qqqq")
HEAD_BYTES: Final = _HEAD.size
LAST_ENTRY: Final = -1
"""As the id of an entry to read: the one with the highest id that the bookie has."""


@dataclass(frozen=True, slots=True)
class BookieEntry:
    """An entry that passed its digest."""

    entry_id: int
    last_add_confirmed: int
    length_bytes: int
    """Of all payloads up to this one."""
    payload: EntryBytes
    """A large one is a view of what was received."""


def packed_head(
    digest: EntryDigest,
    *,
    ledger_id: int,
    entry_id: int,
    last_add_confirmed: int,
    length_bytes: int,
    pieces: Sequence[EntryBytes],
) -> bytes:
    """What stands before an entry's payload, whose pieces are given: head and digest."""
    head = _HEAD.pack(ledger_id, entry_id, last_add_confirmed, length_bytes)
    return head + digest.compute(head, pieces)


def packed_heads(
    digest: EntryDigest,
    *,
    ledger_id: int,
    first_entry_id: int,
    last_add_confirmed: int,
    lengths_bytes: Sequence[int],
    payloads: Sequence[bytes],
) -> tuple[list[bytes], list[bytes]]:
    """The two parts of what `packed_head` gives, head and digest, for each entry of a run."""
    # Hot path: publishing to bookies, one call a run.
    pack = _HEAD.pack
    heads = [
        pack(ledger_id, entry_id, last_add_confirmed, length_bytes)
        for entry_id, length_bytes in enumerate(lengths_bytes, first_entry_id)
    ]
    return heads, digest.of_run(heads, payloads)


def unpacked(digest: EntryDigest, ledger_id: int, entry_id: int, data: bytes) -> BookieEntry:
    """Read what a bookie gave for an entry, `LAST_ENTRY` for whichever it has.

    Raises:
        CorruptDataError: It fails its digest, or is another entry.
    """
    name = f"ledger {ledger_id}: entry {entry_id}"
    payload_offset = HEAD_BYTES + digest.size_bytes
    if len(data) < payload_offset:
        raise CorruptDataError(f"{name}: {len(data)} bytes, its head has {payload_offset}")
    found_ledger, found_entry, last_add_confirmed, length_bytes = _HEAD.unpack_from(data)
    with memoryview(data) as view:
        found_digest = digest.compute(view[:HEAD_BYTES], (view[payload_offset:],))
    if found_digest != data[HEAD_BYTES:payload_offset]:
        raise CorruptDataError(f"{name}: its digest does not match")
    if found_ledger != ledger_id or entry_id not in (found_entry, LAST_ENTRY):
        raise CorruptDataError(f"{name}: it says that it is {found_ledger}:{found_entry}")
    is_large = len(data) - payload_offset >= LENT_BYTES
    payload = memoryview(data)[payload_offset:] if is_large else data[payload_offset:]
    return BookieEntry(found_entry, last_add_confirmed, length_bytes, payload)
