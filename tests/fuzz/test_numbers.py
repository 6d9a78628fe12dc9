"""No input takes memory in proportion to a number that it names."""

from __future__ import annotations

from pulsar_py.admin.api.all_routes import all_routes
from tests.fuzz.numbers import commands_with, peaks, requests_with
from tests.fuzz.targets import Commands, Frames, Requests

NUMBERS = (100, 20_000_000, (1 << 31) - 1, (1 << 63) - 1)
"""A byte for each of the second is far above the limit; the first imports modules and fills caches."""
LIMIT_BYTES = 1 << 20
"""What an input may take; the canary's reads take a quarter of it at times."""
LEAST_COMMANDS = 120
LEAST_REQUESTS = 150


class Greedy(Frames):
    """Takes what it is told to."""

    async def feed(self, data: bytes) -> None:
        bytearray(int(data))


async def test_memory_that_nobody_touches_is_seen() -> None:
    async with Greedy() as target:
        (small, _), (large, _) = await peaks(target, [("", b"100"), ("", b"20000000")])
    assert small < LIMIT_BYTES < large


async def test_no_command_does() -> None:
    async with Commands() as target:
        for number in NUMBERS:
            inputs = list(commands_with(number))
            assert len(inputs) > LEAST_COMMANDS
            taken = await peaks(target, inputs)
            assert number == NUMBERS[0] or max(taken)[0] < LIMIT_BYTES, (number, max(taken))


async def test_no_request_does() -> None:
    async with Requests() as target:
        routes = list(all_routes(target.broker.service))
        for number in NUMBERS:
            await target.check()
            inputs = list(requests_with(routes, number))
            assert len(inputs) > LEAST_REQUESTS
            taken = await peaks(target, inputs)
            assert number == NUMBERS[0] or max(taken)[0] < LIMIT_BYTES, (number, max(taken))


async def test_no_size_of_a_frame_does() -> None:
    """Bytes of a frame that were named and did not come are not kept ready."""
    async with Frames() as target:
        for number in (*NUMBERS[:2], 5_000_000, (1 << 32) - 1):
            size = min(number, (1 << 32) - 1)
            sizes = (size.to_bytes(4) + b"\0\0\0\7", b"\0\0\x10\0" + size.to_bytes(4))
            inputs = [(f"{each!r}", each + b"\x08\x02" * 20) for each in sizes]
            taken = await peaks(target, inputs)
            assert max(taken)[0] < LIMIT_BYTES, taken
