"""A SqliteMetadataStore for tests in virtual time: the loop stands still while its thread works."""

from __future__ import annotations

import threading
from pathlib import Path

from pulsar_py.common.loops.clock import Clock
from pulsar_py.metadata.sqlite_file import SqliteFile
from pulsar_py.metadata.sqlite_store import SqliteMetadataStore, _Operation
from pulsar_py.metadata.store import EMBEDDED_LIMITS, MetadataLimits


class SynchronousSqliteStore(SqliteMetadataStore):
    """Like its parent, file, thread and commits; but virtual time can't pass during a commit.

    An idle loop in virtual time jumps to its next timer, and a loop that waits for a thread is
    idle: without this, one commit could outlast any time-out.
    """

    def __init__(
        self, path: Path, clock: Clock, *, limits: MetadataLimits = EMBEDDED_LIMITS
    ) -> None:
        super().__init__(path, clock, limits=limits)
        self._done = threading.Semaphore(0)

    def _flush(self) -> None:
        has_work = bool(self._batch)
        super()._flush()
        if has_work:
            self._done.acquire()

    def _carry_out(self, file: SqliteFile, operations: list[_Operation]) -> None:
        try:
            super()._carry_out(file, operations)
        finally:
            self._done.release()
