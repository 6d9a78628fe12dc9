from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.server.handlers.pending import PendingConsumer, PendingProducer


class Waiting:
    is_lost = False

    def on_connection_lost(self) -> None:
        self.is_lost = True


def test_permits_that_come_early_add_up() -> None:
    pending = PendingConsumer()
    pending.flow(5)
    pending.flow(2)
    assert pending.permits_count == 7
    pending.abandon()
    assert pending.is_abandoned


@pytest.mark.parametrize("permits", [0, 2**31, 2**32 - 1])
def test_permits_that_are_not_positive_break_the_protocol(permits: int) -> None:
    with pytest.raises(RemoteProtocolError, match="permits"):
        PendingConsumer().flow(permits)


def test_abandoning_takes_a_waiting_producer_from_its_topic() -> None:
    pending = PendingProducer()
    pending.abandon()
    pending.producer = waiting = Waiting()  # type: ignore[assignment]
    pending.abandon()
    assert pending.is_abandoned
    assert waiting.is_lost


async def test_an_answer_ends_the_wait_for_it() -> None:
    pending = PendingProducer()
    order: list[str] = []

    async def close() -> None:
        await pending.wait_until_answered()
        order.append("closed")

    async def answer() -> None:
        await asyncio.sleep(0)
        assert not pending.is_answered
        pending.on_answered()
        order.append("answered")

    await asyncio.gather(close(), answer())
    assert pending.is_answered
    assert order == ["answered", "closed"]
