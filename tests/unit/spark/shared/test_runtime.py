"""The loop of a process, and clients that are shared and closed when idle."""

from __future__ import annotations

import asyncio
import multiprocessing

import pytest

from pulsar_py.client import Client
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.spark.shared.options import ClientOptions
from pulsar_py.spark.shared.runtime import IDLE_SECONDS, ClientCache, make_client, runtime
from pulsar_py.testing.clock import VirtualClock

OPTIONS = ClientOptions("pulsar://localhost:1", None)
OTHER = ClientOptions("pulsar://localhost:1", None, {"listenername": "x"})


async def test_equal_settings_share_a_client() -> None:
    cache = ClientCache(VirtualClock(), make_client)
    async with cache.client(OPTIONS) as one, cache.client(OPTIONS) as two:
        assert one is two
    async with cache.client(OPTIONS) as again, cache.client(OTHER) as other:
        assert again is one
        assert other is not one
        assert other.context.config.listener_name == "x"
    await cache.close()
    assert one.is_closed
    assert other.is_closed


async def test_a_client_that_nobody_uses_is_closed_when_another_is_asked_for() -> None:
    clock = VirtualClock()
    cache = ClientCache(clock, make_client)
    async with cache.client(OPTIONS) as used:
        async with cache.client(OTHER) as idle:
            pass
        clock.jump(IDLE_SECONDS + 1)
        async with cache.client(OPTIONS) as again:
            assert again is used
        assert idle.is_closed
        assert not used.is_closed
    await cache.close()


def test_a_client_that_was_closed_is_replaced() -> None:
    async def main() -> tuple[Client, Client]:
        cache = ClientCache(VirtualClock(), make_client)
        async with cache.client(OPTIONS) as one:
            await one.close()
        async with cache.client(OPTIONS) as two:
            pass
        await cache.close()
        return one, two

    one, two = asyncio.run(main())
    assert one is not two


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown option 'pulsar\.client\.nosuch'"):
        make_client(ClientOptions("pulsar://localhost:1", None, {"nosuch": "1"}))


def _runtime_answers() -> None:
    async def nothing() -> int:
        return 5

    assert runtime().loop.call(nothing()) == 5


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_process_forked_later_gets_a_loop_of_its_own() -> None:
    _runtime_answers()
    child = multiprocessing.get_context("fork").Process(target=_runtime_answers)
    child.start()
    child.join(20)
    assert child.exitcode == 0
