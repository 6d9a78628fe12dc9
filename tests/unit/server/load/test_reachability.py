from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from pulsar_py.server.load.reachability import CONNECT_SECONDS, FRESH_SECONDS, Reachability
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import SimulatedLoop, run_simulated

URL = "pulsar://far:6650"


def simulated(test: Callable[[Reachability], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    async def run() -> None:
        reachability = Reachability(VirtualClock())
        await test(reachability)
        await reachability.close()

    def wrapped() -> None:
        run_simulated(run(), latency_seconds=0.001)

    return wrapped


def loop() -> SimulatedLoop:
    running = asyncio.get_running_loop()
    assert isinstance(running, SimulatedLoop)
    return running


@simulated
async def test_who_listens_accepts_and_who_does_not_refuses(reachability: Reachability) -> None:
    assert not await reachability.accepts(URL)
    server = await loop().create_server(asyncio.Protocol, "far", 6650)
    assert not await reachability.accepts(URL)  # the result counts for a while
    await asyncio.sleep(2 * FRESH_SECONDS)
    assert await reachability.accepts(URL)
    server.close()


@simulated
async def test_one_attempt_serves_all_that_ask_meanwhile(reachability: Reachability) -> None:
    accepted: list[asyncio.Protocol] = []

    def accept() -> asyncio.Protocol:
        accepted.append(asyncio.Protocol())
        return accepted[-1]

    server = await loop().create_server(accept, "far", 6650)
    assert all(await asyncio.gather(*(reachability.accepts(URL) for _ in range(10))))
    assert len(accepted) == 1
    server.close()


@simulated
async def test_who_says_nothing_counts_as_refusing(reachability: Reachability) -> None:
    loop().network.silence("far", 6650)
    began_at = loop().time()
    assert not await reachability.accepts(URL)
    assert loop().time() - began_at == pytest.approx(CONNECT_SECONDS, abs=0.1)


@simulated
async def test_an_address_without_a_port_is_refused(reachability: Reachability) -> None:
    with pytest.raises(ValueError, match="host and port"):
        await reachability.accepts("pulsar://far")
