"""Rewrites an entry log that is mostly garbage (edge); `compaction` says which.

All living runs are read, verified and copied to a log of their own while reads and writes go on;
then the index gets their new places, and only after that is durable the old log goes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.storage.entry_log import log_path
from pulsar_py.storage.entry_log_format import (
    LOG_HEADER_BYTES,
    RunHeader,
    check_log_header,
    decode_run,
    run_length,
)
from pulsar_py.storage.index_format import run_key
from pulsar_py.storage.ledger_storage import Copy, LedgerStorage

PIECE_BYTES = 1024 * 1024


async def compact_log(storage: LedgerStorage, log_id: int) -> int:
    """Rewrite what lives in a log and remove the log; returns the bytes copied.

    Raises:
        CorruptDataError: A living run is damaged; the log stays.
        StorageError: It can't be done now; the log stays.
    """
    writer = storage.begin_copying()
    copies: dict[int, list[Copy]] = {}
    is_living: dict[int, bool] = {}
    copied_bytes = 0
    try:
        async for header, offset, data in _runs(storage, log_id):
            ledger_id = header.ledger_id
            if ledger_id not in is_living:
                is_living[ledger_id] = await storage.record(ledger_id) is not None
            if not is_living[ledger_id] or not await _is_current(storage, header, log_id, offset):
                continue
            decode_run(data, log_path(log_id), offset)
            location = await writer.add([data], header.count)
            key = run_key(ledger_id, header.first_entry_id)
            copies.setdefault(ledger_id, []).append(Copy(key, location))
            copied_bytes += location.length
        await writer.sync()
        await storage.publish_copies(log_id, copies)
    except BaseException:
        # What was copied may already be named by a manifest; the next start knows.
        await writer.abandon(remove=False)
        raise
    finally:
        storage.end_copying()
    await writer.close()
    return copied_bytes


async def _is_current(storage: LedgerStorage, header: RunHeader, log_id: int, offset: int) -> bool:
    found = await storage.index.find_runs(header.ledger_id, header.first_entry_id, 0)
    return bool(found) and (found[0][1].log_id, found[0][1].offset) == (log_id, offset)


async def _runs(storage: LedgerStorage, log_id: int) -> AsyncIterator[tuple[RunHeader, int, bytes]]:
    """Whole runs from the start of a log; ends at its end or where a failed flush left off."""
    path = log_path(log_id)
    try:
        check_log_header(await storage.readers.read(log_id, 0, LOG_HEADER_BYTES), log_id, path)
    except FileNotFoundError:
        raise CorruptDataError(f"{path}: the manifest names it, and it is missing") from None
    offset, data, at = LOG_HEADER_BYTES, b"", 0
    wanted = PIECE_BYTES
    while True:
        try:
            found = run_length(data, at)
        except ValueError:
            return
        if found is not None and at + found[1] <= len(data):
            header, length = found
            yield header, offset, data[at : at + length]
            offset += length
            at += length
            continue
        wanted = max(PIECE_BYTES, found[1] if found else 2 * (len(data) - at))
        piece = await storage.readers.read(log_id, offset, wanted)
        if len(piece) <= len(data) - at:
            return
        data, at = piece, 0
