"""Copies one ledger with its id, and compares the copy with it, entry by entry (edge).

The copy is closed where the ledger ends. Reading it back checks each entry's digest, as a broker's
reading does, and its bytes are compared with what should be there: that is the proof that it is
whole, also of a copy that an earlier attempt made.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import LedgerNotFoundError, MigrationError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.ledgers.chosen_ledgers import ChosenLedgers
from pulsar_py.ledgers.store import LedgerOptions, LedgerReader
from pulsar_py.managed_ledger.log.whole_ledger import WholeLedgerWriter

READ_BYTES: Final = 4 * 1024 * 1024
"""Of one reading; larger entries come alone."""

Rewrite = Callable[[int, bytes], bytes]
"""What an entry becomes, by its id."""


async def copy_ledger(
    source: LedgerReader,
    target: ChosenLedgers,
    ledger_id: int,
    *,
    options: LedgerOptions,
    rewrite: Rewrite,
    clock: Clock,
) -> int:
    """Make the ledger `ledger_id` in `target`; returns the bytes of its entries, as compared.

    Raises:
        MigrationError: What is there afterwards is not the same.
        StorageError, MetadataError: It can't be read, written or read back.
    """
    end = source.last_add_confirmed
    if not await _is_there(target, ledger_id, end):
        writer = WholeLedgerWriter(target, clock)
        handle = await target.create_chosen(ledger_id, writer, options)
        writer.take(handle)
        async for entry_id, data in _entries(source, handle.last_add_confirmed + 1, end):
            await writer.append(rewrite(entry_id, bytes(data)))
        await writer.close()
    return await compare_ledger(source, target, ledger_id, options.password, rewrite)


async def _is_there(target: ChosenLedgers, ledger_id: int, end: int) -> bool:
    """Whether a copy was closed at that end."""
    try:
        info = await target.info(ledger_id)
    except LedgerNotFoundError:
        return False
    return info.is_closed and info.last_entry_id == end


async def compare_ledger(
    source: LedgerReader,
    target: ChosenLedgers,
    ledger_id: int,
    password: bytes,
    rewrite: Rewrite,
) -> int:
    """Read all of a copy; returns the bytes of its entries.

    Raises:
        MigrationError: It is not what it should be.
        StorageError: It can't be read, which includes an entry whose digest is wrong.
    """
    size_bytes = 0
    reader = await target.open(ledger_id, password=password)
    try:
        end = source.last_add_confirmed
        if not reader.is_closed or reader.last_add_confirmed != end:
            raise MigrationError(
                f"ledger {ledger_id} ends at entry {reader.last_add_confirmed}, expected {end}"
            )
        copies = _entries(reader, 0, end)
        async for entry_id, data in _entries(source, 0, end):
            _, copy = await anext(copies)
            expected = rewrite(entry_id, bytes(data))
            if bytes(copy) != expected:
                raise MigrationError(
                    f"ledger {ledger_id}: entry {entry_id} is not what was copied: "
                    f"{len(copy)} bytes, expected {len(expected)}"
                )
            size_bytes += len(expected)
    finally:
        await reader.close()
    return size_bytes


async def _entries(
    reader: LedgerReader, first: int, last: int
) -> AsyncIterator[tuple[int, EntryBytes]]:
    entry_id = first
    while entry_id <= last:
        for data in await reader.read(entry_id, last, READ_BYTES):
            yield entry_id, data
            entry_id += 1
