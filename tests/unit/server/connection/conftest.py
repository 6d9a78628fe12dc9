"""The connection layer above stand-ins for topics: a transport that records, topics that agree."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.server.handlers.settings import ConnectionSettings
from pulsar_py.server.schema_registry import SchemaRegistry
from pulsar_py.storage.bookie import Bookie, BookieSettings
from pulsar_py.testing.clock import VirtualClock, pytest_asyncio_loop_factories, virtual_clock
from pulsar_py.testing.ledger_ids import CountedLedgerIds
from tests.unit.server.connection.standins import Server

__all__ = ["pytest_asyncio_loop_factories", "virtual_clock"]


@pytest.fixture
def settings() -> ConnectionSettings:
    return ConnectionSettings(max_message_bytes=1_000_000)


@pytest.fixture
async def schemas(virtual_clock: VirtualClock) -> AsyncIterator[SchemaRegistry]:
    bookie = await Bookie.start(
        MemoryDisk(),
        clock=virtual_clock,
        ledger_ids=CountedLedgerIds(),
        settings=BookieSettings(is_volatile=True),
    )
    registry = SchemaRegistry(MemoryMetadataStore(virtual_clock), bookie, virtual_clock)
    yield registry
    await registry.close()
    await bookie.close()


@pytest.fixture
async def server(
    virtual_clock: VirtualClock, settings: ConnectionSettings, schemas: SchemaRegistry
) -> AsyncIterator[Server]:
    started = Server(virtual_clock, settings, schemas)
    yield started
    await started.connections.close()
