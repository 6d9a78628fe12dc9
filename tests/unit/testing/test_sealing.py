"""A simulated world refuses what is real, says who asked, and leaves no trace of itself."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import secrets
import socket
import subprocess
import sys
import threading
import time
import uuid
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from pulsar_py.client.client import Client
from pulsar_py.testing.clock import COLLECT_EVERY_SECONDS, VirtualClock
from pulsar_py.testing.network import run_simulated
from pulsar_py.testing.sealing import RealityError, sealed, steady_collector, unsealed

REAL: tuple[tuple[str, object, str, tuple[object, ...]], ...] = (
    ("time.time", time, "time", ()),
    ("time.monotonic_ns", time, "monotonic_ns", ()),
    ("time.perf_counter", time, "perf_counter", ()),
    ("time.sleep", time, "sleep", (0,)),
    ("random.random", random, "random", ()),
    ("random.shuffle", random, "shuffle", ([1],)),
    ("random.Random without a seed", random, "Random", ()),
    ("os.urandom", os, "urandom", (1,)),
    ("random._urandom", secrets, "token_bytes", (1,)),
    ("uuid.uuid4", uuid, "uuid4", ()),
    ("threading.Thread.start", ThreadPoolExecutor(1), "submit", (int,)),
    ("subprocess.Popen", subprocess, "run", ([sys.executable, "-V"],)),
)
"""What the error says, and the call; looked up late, as the code of a world does."""


@pytest.mark.parametrize(("what", "owner", "name", "arguments"), REAL, ids=[row[0] for row in REAL])
def test_what_is_real_is_refused_by_name_and_line(
    what: str, owner: object, name: str, arguments: tuple[object, ...]
) -> None:
    async def work() -> None:
        getattr(owner, name)(*arguments)

    with pytest.raises(RealityError, match="test_sealing") as caught:
        run_simulated(work())
    assert str(caught.value).startswith(f"{what} was called in a simulated world, by ")


def test_a_socket_can_not_be_bound() -> None:
    async def work() -> None:
        with socket.socket() as real:
            real.bind(("127.0.0.1", 0))

    with pytest.raises(RealityError, match=r"socket\.bind was called .*test_sealing"):
        run_simulated(work())


def test_who_catches_it_does_not_hide_it() -> None:
    async def work() -> None:
        try:
            uuid.uuid4()
        except Exception:  # noqa: BLE001 - as an edge would
            await asyncio.sleep(1)

    with pytest.raises(RealityError, match="uuid4 was called"):
        run_simulated(work())


def test_a_client_without_a_seed_is_refused() -> None:
    async def work() -> None:
        Client("pulsar://broker:6650", clock=VirtualClock())

    with pytest.raises(RealityError, match="Random without a seed"):
        run_simulated(work())


def test_a_real_socket_is_not_waited_for() -> None:
    async def work() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            asyncio.get_running_loop().add_reader(ours, print)

    with pytest.raises(RealityError, match="waits for the real"):
        run_simulated(work())


def test_another_thread_can_not_wake_a_world() -> None:
    async def work() -> BaseException | None:
        with unsealed(), ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.get_running_loop().call_soon_threadsafe, print).exception()

    assert isinstance(run_simulated(work()), RealityError)


def test_chance_with_a_seed_and_the_loops_time_are_a_worlds_own() -> None:
    async def work() -> tuple[float, float]:
        await asyncio.sleep(3)
        return random.Random(5).random(), asyncio.get_running_loop().time()

    assert run_simulated(work()) == (random.Random(5).random(), 3.0)


def test_logging_may_tell_the_time(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        logging.getLogger("a world").warning("heard")

    run_simulated(work())
    assert caplog.messages == ["heard"]


def test_other_threads_go_on() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # its thread is there
        with sealed():
            assert pool.submit(uuid.uuid4).result(60)
            assert pool.submit(time.monotonic_ns).result(60)


def replaced() -> list[object]:
    """What a seal puts something else in the place of."""
    classes = (random.Random.seed, threading.Thread.start, subprocess.Popen.__init__)
    modules = [dict(vars(module)) for module in (time, random, os, uuid)]
    return [*classes, *modules, "bind" in vars(socket.socket), gc.isenabled()]


def test_afterwards_everything_is_as_before() -> None:
    before = replaced()

    def fail() -> None:
        with sealed(), steady_collector():
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fail()
    assert replaced() == before


class Knot:
    """Garbage that only the collector sees."""

    def __init__(self) -> None:
        self.me = self


def test_cyclic_garbage_goes_at_set_virtual_times() -> None:
    async def work() -> list[float]:
        loop = asyncio.get_running_loop()
        ended: list[float] = []
        weakref.finalize(Knot(), lambda: ended.append(loop.time()))
        held = [Knot() for _ in range(100_000)]  # many times what starts the collector
        del held
        for _ in range(100):
            await asyncio.sleep(1)
        return ended

    assert run_simulated(work()) == [COLLECT_EVERY_SECONDS]


def test_what_was_kept_of_a_sealed_world_works_after_it() -> None:
    """A module that is first imported in one keeps what its names were then."""
    with sealed():
        kept = os.urandom
    assert len(kept(4)) == 4
