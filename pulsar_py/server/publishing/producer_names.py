"""`ProducerNames`: generates names for producers without one, `<cluster>-<n>-<m>` (edge).

`n` is the number of an ephemeral sequential child of `/counters/producer-name`, which this broker
makes at the first use and keeps; `m` is counted in memory. So a name costs no write, and none is
returned twice, also not after a crash.

Source: DistributedIdGenerator in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pulsar_py.common.errors import MetadataOutcomeUnknownError
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MetadataStore

MAX_ATTEMPTS: Final = 3
"""The most attempts to take a number, while the outcome of each is unknown."""


class ProducerNames:
    """The generator of one broker; the session of its number ends with the metadata store."""

    def __init__(self, metadata: MetadataStore, cluster: str) -> None:
        self._metadata = metadata
        self._cluster = cluster
        self._instance: int | None = None  # this start's number
        self._next = 0
        self._lock = asyncio.Lock()  # held while the number is taken

    async def new_name(self) -> str:
        """A name that no producer of the cluster ever had.

        Raises:
            MetadataError: No number could be taken.
        """
        if self._instance is None:
            async with self._lock:
                if self._instance is None:  # no other call took one meanwhile
                    self._instance = await self._take_number()
        name = f"{self._cluster}-{self._instance}-{self._next}"
        self._next += 1
        return name

    async def _take_number(self) -> int:
        session = await self._metadata.open_session()
        attempt = 1
        while True:
            try:
                path = await self._metadata.create_sequential(
                    paths.PRODUCER_NAME_PREFIX, b"", session
                )
            except MetadataOutcomeUnknownError:
                if attempt == MAX_ATTEMPTS:
                    raise
                attempt += 1  # a number may be lost
            else:
                return paths.sequence_number(path)
