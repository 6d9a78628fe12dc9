"""lasting_answers: how long the parts of an answer are sent to a caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from pulsar_py.admin.http_messages import AnswerEndedError, HttpError
from pulsar_py.admin.lasting_answers import CHECK_SECONDS, while_allowed
from pulsar_py.common.errors import AuthenticationError, MetadataError
from pulsar_py.testing.clock import VirtualClock, run_virtual


class Parts:
    """An answer of ten parts a second, and what becomes of it."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.is_closed = False

    async def made(self) -> AsyncGenerator[bytes, None]:
        try:
            for number in range(self.count):
                yield b"%d" % number
                await asyncio.sleep(0.1)
        finally:
            self.is_closed = True


class Caller:
    """Somebody whose requests fail from a time on."""

    def __init__(self, error: Exception | None, from_seconds: float = 1.0) -> None:
        self.error = error
        self.from_seconds = from_seconds
        self.asked_at: list[float] = []

    async def check(self) -> None:
        now = asyncio.get_running_loop().time()
        self.asked_at.append(now)
        if self.error is not None and now >= self.from_seconds:
            raise self.error


async def taken(parts: Parts, caller: Caller) -> int:
    """How many parts came."""
    count = 0
    async with aclosing(while_allowed(parts.made(), caller.check, VirtualClock())) as stream:
        async for _ in stream:
            count += 1
    return count


def test_a_caller_is_asked_for_twice_a_second() -> None:
    parts, caller = Parts(20), Caller(None)
    assert run_virtual(taken(parts, caller)) == 20
    assert caller.asked_at == pytest.approx([CHECK_SECONDS, 1.0, 1.5], abs=0.11)
    assert parts.is_closed


@pytest.mark.parametrize("error", [AuthenticationError("expired"), HttpError(403, "no right")])
def test_who_may_not_have_the_rest_does_not_get_it(error: Exception) -> None:
    parts, caller = Parts(100), Caller(error)
    with pytest.raises(AnswerEndedError, match=str(error)):
        run_virtual(taken(parts, caller))
    assert caller.asked_at[-1] < caller.from_seconds + CHECK_SECONDS + 0.2
    assert parts.is_closed


def test_while_nobody_can_tell_the_answer_goes_on() -> None:
    assert run_virtual(taken(Parts(20), Caller(MetadataError("away")))) == 20
