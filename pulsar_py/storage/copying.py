"""The files of a running engine for a backup: a checkpoint, which needs no journal (edge).

Entry logs and index tables never change once a manifest names them; a log only grows. So the
engine flushes what is confirmed, and from then on the files that its manifest names are the copy,
while nothing of them is removed. The copy's manifest is the same but for its mark, which says that
the journal begins with a file that there is not yet.

    ledgers held  ->  the metadata is copied  ->  flush  ->  manifest  ->  ledgers let go
    files held    ->  ...................................................  all copies made

The metadata comes first, so that all ledgers that it names are in the copy: none is deleted until
the manifest is taken. Ledgers may have more entries than when the metadata was copied, and that is
what a broker finds after a crash, too; none is created meanwhile, so no id in the copy is above
those that the metadata has given.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from msgspec.structs import replace

from pulsar_py.common.disks.copied_file import CopiedFile, of_bytes, of_disk
from pulsar_py.common.errors import StorageError
from pulsar_py.storage.bookie import Bookie
from pulsar_py.storage.entry_logs.entry_log import log_path
from pulsar_py.storage.index.index_table import table_path
from pulsar_py.storage.shared.manifest import PATH as MANIFEST_PATH

__all__ = ["HOLD_SECONDS", "copied"]

HOLD_SECONDS: Final = 30.0
"""The longest time that no ledger can be created or deleted."""


@asynccontextmanager
async def copied(
    bookie: Bookie, copy_metadata: Callable[[], Awaitable[None]]
) -> AsyncIterator[Sequence[CopiedFile]]:
    """The files of an engine, which stay as they are while the context is open.

    Args:
        bookie: The engine, which is not volatile.
        copy_metadata: Copies the metadata that names the engine's ledgers.

    Raises:
        StorageError: The disk can't do it now, or it takes more than `HOLD_SECONDS`.
    """
    storage = bookie.storage
    async with storage.hold.of_files():
        try:
            async with asyncio.timeout(HOLD_SECONDS), storage.hold.of_ledgers():
                await copy_metadata()
                await bookie.flush()
                manifest = storage.manifest
        except TimeoutError:
            raise StorageError(
                f"metadata and ledgers were not brought together within {HOLD_SECONDS:g} s"
            ) from None
        mark = (manifest.mark[0] + 1, 0)
        paths = [
            *(table_path(table_id) for table_id in manifest.tables),
            *(log_path(log_id) for log_id in manifest.logs),
        ]
        files = [await of_disk(storage.disk, path, path) for path in paths]
        yield [*files, of_bytes(MANIFEST_PATH, replace(manifest, mark=mark).encode())]
