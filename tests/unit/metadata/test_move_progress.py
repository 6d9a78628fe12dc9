from __future__ import annotations

import pytest
from msgspec.structs import replace

from pulsar_py.common.errors import FormatVersionError, MigrationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.move_progress import (
    DONE,
    PATH,
    MoveProgress,
    check_no_move,
    read_progress,
)

PROGRESS = MoveProgress(source="i", fingerprint="f", cluster="c", verified_through=7)


async def test_what_was_written_is_read_back() -> None:
    metadata = MemoryMetadataStore(SystemClock())
    assert await read_progress(metadata) is None
    await metadata.put(PATH, PROGRESS.encode())
    assert await read_progress(metadata) == PROGRESS
    assert PROGRESS.encode() == (
        b'{"format":1,"source":"i","fingerprint":"f","cluster":"c","ledger_id_offset":0,'
        b'"existing":"refuse","is_new":true,"verified_through":7,"state":"moving"}'
    )


async def test_a_move_that_has_not_ended_keeps_brokers_away() -> None:
    metadata = MemoryMetadataStore(SystemClock())
    await check_no_move(metadata)
    await metadata.put(PATH, PROGRESS.encode())
    with pytest.raises(MigrationError, match="run the same `pulsar-py migrate` again"):
        await check_no_move(metadata)
    await metadata.put(PATH, replace(PROGRESS, state=DONE).encode())
    await check_no_move(metadata)


async def test_another_format_and_what_can_not_be_read_are_errors() -> None:
    metadata = MemoryMetadataStore(SystemClock())
    await metadata.put(PATH, replace(PROGRESS, format=2).encode())
    with pytest.raises(FormatVersionError):
        await read_progress(metadata)
    for value in (b'{"format":1}', b"{", b"[]"):
        await metadata.put(PATH, value)
        with pytest.raises(MigrationError, match="can't be read"):
            await read_progress(metadata)
