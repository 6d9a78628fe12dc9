"""contained: errors of users' code are counted, logged now and then, and go no further."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.server.hooks.contained import Contained, HookErrors
from pulsar_py.testing.clock import VirtualClock


async def test_each_is_counted_and_one_a_second_is_logged(
    virtual_clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    errors = HookErrors(virtual_clock)
    contained = Contained("a.Hook", errors)
    for _ in range(3):
        with contained:
            raise ValueError("wrong")
    await virtual_clock.sleep(1)
    with contained:
        raise ValueError("wrong again")
    assert errors.counts == {"a.Hook": 4}
    assert errors.total == 4
    assert [record.__dict__["not_logged"] for record in caplog.records] == [0, 2]
    assert "a.Hook" in caplog.text


@pytest.mark.parametrize("kind", [asyncio.CancelledError, SystemExit, GeneratorExit])
async def test_a_hook_ends_neither_the_task_nor_the_process(
    virtual_clock: VirtualClock, kind: type[BaseException]
) -> None:
    errors = HookErrors(virtual_clock)
    with Contained("a.Hook", errors):
        raise kind
    assert errors.counts == {"a.Hook": 1}


async def test_an_interrupt_of_the_user_goes_on(virtual_clock: VirtualClock) -> None:
    errors = HookErrors(virtual_clock)
    with pytest.raises(KeyboardInterrupt), Contained("a.Hook", errors):
        raise KeyboardInterrupt
    assert not errors.total
