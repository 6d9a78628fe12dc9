"""The world of a soak: a whole broker in memory, a faulty proxy before it, clients behind that."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pulsar_py.client.client import Client
from pulsar_py.standalone import Broker
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.faulty_proxy import Faults, FaultyProxy

LATENCY_SECONDS = 0.0005
MAX_MESSAGE_BYTES = 20_000

BROKER = {
    "advertisedListeners": "internal:pulsar://proxy:6650",
    "brokerDeduplicationEnabled": True,
    "maxMessageSize": MAX_MESSAGE_BYTES,
    "keepAliveIntervalSeconds": 10,
    "managedLedgerMaxEntriesPerLedger": 2_000,
    "managedLedgerMinLedgerRolloverTimeMinutes": 0,
}

FAULTS = Faults(
    delay_seconds=(0.0, 0.02),
    piece_bytes=16_000,
    cut_every_seconds=50,
    torn_every_seconds=80,
    stall_every_seconds=40,
    stall_seconds=(0.1, 12.0),
    drop_every_seconds=90,
    outage_every_seconds=200,
    outage_seconds=(0.1, 45.0),
)

CLIENT = {
    "operation_timeout_seconds": 20.0,
    "keep_alive_interval_seconds": 5.0,
    "max_backoff_interval_ms": 5_000,
    "connection_timeout_ms": 5_000,
}


class World:
    """One broker, one proxy; any number of clients."""

    def __init__(self, seed: object) -> None:
        self._seed = seed
        self.clock = VirtualClock()
        self.broker = Broker(
            config=BROKER,
            host="broker",
            port=6650,
            web_port=8080,
            clock=self.clock,
            chance=self.chance("broker"),
        )
        self.proxy = FaultyProxy("broker", 6650, self.chance("proxy"), faults=FAULTS)

    def chance(self, name: str) -> random.Random:
        """A generator for one part: what others draw doesn't change it."""
        return random.Random(f"{self._seed} {name}")

    def client(self, name: str) -> Client:
        return Client("pulsar://proxy:6650", clock=self.clock, chance=self.chance(name), **CLIENT)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[World]:
        async with self.broker:
            await self.proxy.start("proxy", 6650)
            try:
                yield self
            finally:
                await self.proxy.close()

    @staticmethod
    def now() -> float:
        return asyncio.get_running_loop().time()
