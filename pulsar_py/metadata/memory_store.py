"""MemoryMetadataStore."""

from __future__ import annotations

from pulsar_py.common.clock import Clock
from pulsar_py.metadata.store import MetadataStore


class MemoryMetadataStore(MetadataStore):
    """A MetadataStore that lives as long as its object."""

    def __init__(self, clock: Clock) -> None:
        """Filled in next."""
