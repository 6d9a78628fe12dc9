"""Rewrites entry logs that are mostly garbage (edge); `compaction` chooses them.

All live runs of a log are read, verified and copied while reads and writes go on; then the index
gets their new places. The old log is removed only after that is durable. All logs of a collection
are copied to the same new one, which rolls at its size, so that many small rests make few files.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from functools import partial

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.failures import OnFailureAwait
from pulsar_py.storage.entry_logs.entry_log import log_path
from pulsar_py.storage.entry_logs.entry_log_format import (
    LOG_HEADER_BYTES,
    RunHeader,
    check_log_header,
    decode_run,
    run_length,
)
from pulsar_py.storage.entry_logs.ledger_storage import Copy, LedgerStorage, RunWriter
from pulsar_py.storage.index.index_format import run_key

logger = logging.getLogger(__name__)

PIECE_BYTES = 1024 * 1024


async def compact_logs(storage: LedgerStorage, log_ids: Sequence[int]) -> int:
    """Copy the live runs of some logs and remove the logs, one by one; returns the bytes copied.

    A log that was removed meanwhile is skipped.

    Raises:
        CorruptDataError: A live run is damaged; its log and those after it stay.
        StorageError: It can't be done now; the remaining logs stay.
    """
    writer = storage.begin_collection()
    copied_bytes = 0
    try:
        # After an error the new log stays: a manifest may already name it. If none does, the next
        # start removes it.
        async with OnFailureAwait(partial(writer.abandon, remove=False)):
            for log_id in log_ids:
                if log_id in storage.manifest.logs:
                    copied_bytes += await _compact_log(storage, writer, log_id)
    finally:
        storage.end_collection()
    await writer.close()
    return copied_bytes


async def _compact_log(storage: LedgerStorage, writer: RunWriter, log_id: int) -> int:
    storage.begin_copying()
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
        writer.published()
    except FileNotFoundError:
        if log_id in storage.manifest.logs:
            path = log_path(log_id)
            raise CorruptDataError(f"{path}: the manifest names it, and it is missing") from None
        # Else its last live ledger was deleted meanwhile, and the log with it.
    finally:
        storage.end_copying()
    logger.info("entry log compacted", extra={"log_id": log_id, "copied": copied_bytes})
    return copied_bytes


async def _is_current(storage: LedgerStorage, header: RunHeader, log_id: int, offset: int) -> bool:
    found = await storage.index.find_runs(header.ledger_id, header.first_entry_id, 0)
    return bool(found) and (found[0][1].log_id, found[0][1].offset) == (log_id, offset)


async def _runs(storage: LedgerStorage, log_id: int) -> AsyncIterator[tuple[RunHeader, int, bytes]]:
    """Whole runs from the start of a log, up to its end or to where a failed flush stopped."""
    path = log_path(log_id)
    check_log_header(await storage.readers.read(log_id, 0, LOG_HEADER_BYTES), log_id, path)
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
