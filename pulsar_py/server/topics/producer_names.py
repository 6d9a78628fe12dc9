"""ProducerNames: names for producers that bring none, `<cluster>-<n>-<m>` (edge).

`n` is this broker's number in the cluster's sequence `/counters/producer-name`, taken once at the
first use, `m` counts here. So a name costs no write, and none is given out twice, also not after a
crash.

Source: DistributedIdGenerator in Pulsar's broker.
"""

from __future__ import annotations

from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MetadataStore


class ProducerNames:
    """One a broker."""

    def __init__(self, metadata: MetadataStore, cluster: str) -> None:
        self._metadata = metadata
        self._cluster = cluster
        self._instance: int | None = None  # our number in the sequence
        self._next = 0

    async def new_name(self) -> str:
        """A name no producer of the cluster ever had.

        Raises:
            MetadataError: The sequence can't be read.
        """
        if self._instance is None:
            number = await self._metadata.next_in_sequence(paths.PRODUCER_NAME_COUNTER)
            if self._instance is None:  # nobody else took one meanwhile
                self._instance = number
        name = f"{self._cluster}-{self._instance}-{self._next}"
        self._next += 1
        return name
