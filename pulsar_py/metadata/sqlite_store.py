"""SqliteMetadataStore."""

from __future__ import annotations

from pathlib import Path

from pulsar_py.common.clock import Clock
from pulsar_py.metadata.store import MetadataStore


class SqliteMetadataStore(MetadataStore):
    """A MetadataStore in one SQLite file."""

    @classmethod
    async def open(cls, path: str | Path, clock: Clock) -> SqliteMetadataStore:
        """Open or create the file.

        Raises:
            DirectoryLockedError: Another process has it open.
        """
        raise NotImplementedError
