from __future__ import annotations

import asyncio

from pulsar_py.client.acknowledging.negative_acks import NegativeAcksTracker
from pulsar_py.client.acknowledging.redeliveries import Redeliveries
from pulsar_py.client.acknowledging.unacked_tracker import unacked_tracker
from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.testing.clock import VirtualClock, run_virtual
from tests.scripted_broker import ScriptedBroker, simulated
from tests.unit.client.consumer_parts import deliver, new_client, open_consumer, redeliveries
from tests.unit.client.entries import entry

SHARED = {"consumer_type": ConsumerType.Shared}


class Log:
    """Who asks for what, and when."""

    def __init__(self, *, timeout_ms: int, delay_seconds: float = 60) -> None:
        self.events: list[tuple[object, ...]] = []
        self.clock = VirtualClock()
        self.part = Redeliveries(
            self.clock,
            NegativeAcksTracker(delay_seconds),
            unacked_tracker(timeout_ms, 1000, None),
            on_negative_acks=lambda keys: self.note("refused", *keys),
            on_ack_timeouts=lambda keys: self.note("expired", *keys),
            expire_chunks=self.expire_chunks,
        )

    def note(self, *values: object) -> None:
        self.events.append((round(self.clock.monotonic_seconds(), 1), *values))

    def expire_chunks(self, now: float) -> float | None:
        self.note("chunks")
        return None


def test_one_timer_serves_all_in_order() -> None:
    async def work() -> None:
        log = Log(timeout_ms=10_000, delay_seconds=20)
        log.part.refuse((1, 0), 0)
        log.part.entry_handed_out(entry((1, 5), chunk_ids=((1, 4), (1, 5))))
        log.part.chunks_wait(5)
        await asyncio.sleep(60)
        assert log.events == [
            (5, "chunks"),
            (11, "expired", (1, 4), (1, 5)),
            (20, "refused", (1, 0)),
        ]
        log.part.close()

    run_virtual(work())


def test_what_is_acknowledged_or_cleared_is_not_asked_for() -> None:
    async def work() -> None:
        log = Log(timeout_ms=10_000, delay_seconds=1)
        for entry_id in range(4):
            log.part.entry_handed_out(entry((1, entry_id)))
        assert log.part.is_watching
        log.part.entry_acknowledged(entry((1, 3)))
        log.part.acknowledged_until((1, 1))
        log.part.refuse_entry(entry((1, 2)))
        log.part.acknowledged((1, 2))
        await asyncio.sleep(60)
        assert log.events == []
        log.part.refuse((1, 5), 0)
        log.part.clear()
        await asyncio.sleep(60)
        assert log.events == []
        log.part.close()

    run_virtual(work())


def test_a_refused_entry_does_not_time_out_as_well() -> None:
    async def work() -> None:
        log = Log(timeout_ms=1000, delay_seconds=5)
        log.part.entry_handed_out(entry((1, 2)))
        log.part.refuse_entry(entry((1, 2)))
        await asyncio.sleep(60)
        assert [event[1] for event in log.events] == ["refused"]
        log.part.close()

    run_virtual(work())


@simulated
async def test_shared_asks_for_entries(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, negative_ack_redelivery_delay_ms=1000, **SHARED)
        for entry_id in range(3):
            deliver(broker, (1, entry_id))
            consumer.negative_acknowledge(await consumer.receive())
        await asyncio.sleep(2)
        assert redeliveries(broker) == [[0, 1, 2]]
        assert consumer.statistics().redeliveries_requested == 3


@simulated
async def test_exclusive_asks_for_all_and_drops_its_queue(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, negative_ack_redelivery_delay_ms=1000)
        for entry_id in range(3):
            deliver(broker, (1, entry_id))
        consumer.negative_acknowledge(await consumer.receive())
        await asyncio.sleep(2)
        assert redeliveries(broker) == [[]]
        deliver(broker, (1, 9), consumer_epoch=0)
        deliver(broker, (1, 0), consumer_epoch=1)
        assert (await consumer.receive()).data() == b"1:0"
        assert consumer.receive_nowait() is None


@simulated
async def test_batch_received_messages_time_out_and_queued_ones_do_not(
    broker: ScriptedBroker,
) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, unacked_messages_timeout_ms=5000, **SHARED)
        deliver(broker, (1, 0))
        deliver(broker, (1, 1))
        assert len(await consumer.batch_receive()) == 2
        deliver(broker, (1, 2))
        await asyncio.sleep(20)
        assert redeliveries(broker) == [[0, 1]]
