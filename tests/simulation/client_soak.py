"""A soak of the client in virtual time: producers, consumers, and a proxy that cuts and stalls.

    python -m tests.simulation.client_soak --minutes 60 --seed 7

Five streams of messages go through a broker in memory for so many virtual minutes; then the network
heals, and what was confirmed has to arrive. The seed decides everything: the same seed gives the
same digest.
"""

# ruff: noqa: T201 - it prints what it found.

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from pulsar_py.client.client import Client
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.many_topics.multi_topics_consumer import MultiTopicsConsumer
from pulsar_py.client.reading.table_view import TableView
from pulsar_py.client.shared.enums import BatchingType, ConsumerType, InitialPosition
from pulsar_py.common.errors import ProducerQueueFullError, PulsarError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.names import TopicName
from pulsar_py.testing.network import SimulatedLoop, run_simulated
from tests.simulation.client_model import (
    ACKED,
    ARRIVES,
    ENDED,
    IN_TIME,
    INVARIANTS,
    NEWEST,
    READ_ONCE,
    Model,
    Outcome,
    Stream,
    Subscription,
)
from tests.simulation.client_world import LATENCY_SECONDS, World

Opened = TypeVar("Opened")

SEND_TIMEOUT_SECONDS = 30.0
SLACK_SECONDS = 1.0
HEAL_SECONDS = 300.0
"""By when everything has to have arrived after the network healed."""
PREFIX = "persistent://public/default/"


@dataclass(frozen=True)
class SubscriptionPlan:
    name: str
    type: ConsumerType
    consumers: int = 1
    nack_share: float = 0.0
    """Of messages are refused once."""
    is_cumulative: bool = False


@dataclass(frozen=True)
class StreamPlan:
    """One producer, its topic, and who listens."""

    name: str
    keys: int
    per_second: float
    subscriptions: tuple[SubscriptionPlan, ...]
    options: dict[str, Any]
    payload_bytes: int = 40
    partitions: int = 0
    is_one_by_one: bool = False
    """Awaits each send before the next."""

    @property
    def topic(self) -> str:
        return PREFIX + self.name


BATCHES = {"batching_enabled": True, "batching_max_messages": 20, "max_pending_messages": 2000}

PLANS = (
    StreamPlan(
        "batched",
        keys=8,
        per_second=20,
        options=BATCHES,
        subscriptions=(
            SubscriptionPlan("exclusive", ConsumerType.Exclusive, is_cumulative=True),
            SubscriptionPlan("failover", ConsumerType.Failover, consumers=2),
            SubscriptionPlan("shared", ConsumerType.Shared, consumers=3, nack_share=0.01),
        ),
    ),
    StreamPlan(
        "keyed",
        keys=12,
        per_second=20,
        options={**BATCHES, "batching_type": BatchingType.KeyBased},
        subscriptions=(SubscriptionPlan("key-shared", ConsumerType.KeyShared, consumers=3),),
    ),
    StreamPlan(
        "chunked",
        keys=0,
        per_second=1,
        options={"chunking_enabled": True, "max_pending_messages": 100},
        payload_bytes=50_000,
        subscriptions=(
            SubscriptionPlan("exclusive", ConsumerType.Exclusive),
            SubscriptionPlan("failover", ConsumerType.Failover, consumers=2),
        ),
    ),
    StreamPlan(
        "partitioned",
        keys=10,
        per_second=10,
        partitions=3,
        options=BATCHES,
        subscriptions=(
            SubscriptionPlan("failover", ConsumerType.Failover, consumers=2),
            SubscriptionPlan("shared", ConsumerType.Shared, consumers=2),
        ),
    ),
    StreamPlan(
        "single",
        keys=0,
        per_second=5,
        options={"batching_enabled": False},
        subscriptions=(SubscriptionPlan("exclusive", ConsumerType.Exclusive),),
        is_one_by_one=True,
    ),
)


class Soak:
    """One run."""

    def __init__(self, seed: int, minutes: float, *, keeps_log: bool = False) -> None:
        self.seed = seed
        self.minutes = minutes
        self.world = World(seed)
        self.model = Model()
        if keeps_log:
            self.model.log.lines = []
        self.is_stopping = False  # no more messages
        self.is_done = False  # no more receiving
        self.error: BaseException | None = None
        self._failed = asyncio.Event()
        self._tasks = TaskOwner("soak")
        self._clients: dict[str, Client] = {}

    # --- the run ---------------------------------------------------------------------------

    async def run(self) -> Outcome:
        async with self.world.running():
            async with AsyncExitStack() as stack:
                for name in ("producing", "consuming-1", "consuming-2"):
                    self._clients[name] = await stack.enter_async_context(self.world.client(name))
                await self._play()
            await self._check_ended()
        return self._outcome()

    async def _play(self) -> None:
        producers = [await self._start(plan) for plan in PLANS]
        first = self._clients["consuming-1"]
        view = await self._opened("view", lambda: first.create_table_view(PREFIX + "keyed"))
        await self._or_failed(asyncio.sleep(self.minutes * 60))
        self.is_stopping = True
        await self._or_failed(self._all_of(producers))
        self.world.proxy.calm()
        await self._or_failed(self._arrived())
        await self._or_failed(self._acknowledged())
        self._check_view(view)
        self.is_done = True
        await self._tasks.drain()
        if self.error is not None:
            raise self.error

    async def _opened(self, what: str, open_it: Callable[[], Awaitable[Opened]]) -> Opened:
        """What `open_it` opens, however often the network keeps it for too long."""
        while True:
            try:
                return await open_it()
            except PulsarError as error:
                self.model.log.note(self.world.now(), "not opened", what, error)
                await asyncio.sleep(1)

    async def _start(self, plan: StreamPlan) -> asyncio.Task[Any]:
        stream = Stream(plan.name, plan.keys, plan.payload_bytes)
        self.model.streams.append(stream)
        if plan.partitions:
            name = TopicName.parse(plan.topic)
            await self.world.broker.service.topics.partitioned.create(name, plan.partitions)
        for each in plan.subscriptions:
            subscription = Subscription(
                f"{plan.name}/{each.name}", stream, is_ordered=each.type != ConsumerType.Shared
            )
            self.model.subscriptions.append(subscription)
            for number in range(each.consumers):
                self._spawn(self._consume(plan, each, subscription, number), subscription.name)
        if plan.name == "batched":
            self._spawn(self._read(plan, stream), "reader")
        return self._spawn(self._produce(plan, stream), plan.name)

    def _spawn(self, work: Any, name: str) -> asyncio.Task[Any]:
        task = self._tasks.spawn(work, name)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None and not self.error:
            error.add_note(f"in {task.get_name()} at {self.world.now():.3f} s")
            self.error = error
            self._failed.set()

    async def _or_failed(self, work: Any) -> None:
        """Do `work`, unless something fails meanwhile."""
        failed = self._tasks.spawn(self._failed.wait(), "failed")
        main = self._tasks.spawn(work, "main")
        await asyncio.wait((failed, main), return_when=asyncio.FIRST_COMPLETED)
        failed.cancel()
        if self.error is not None:
            main.cancel()
            raise self.error
        await main

    @staticmethod
    async def _all_of(tasks: list[asyncio.Task[Any]]) -> None:
        await asyncio.gather(*tasks)

    # --- producing -------------------------------------------------------------------------

    async def _produce(self, plan: StreamPlan, stream: Stream) -> None:
        chance = self.world.chance(f"produce {plan.name}")
        client = self._clients["producing"]
        producer = await self._opened(
            plan.name,
            lambda: client.create_producer(
                plan.topic,
                producer_name=f"producer-{plan.name}",
                send_timeout_millis=int(SEND_TIMEOUT_SECONDS * 1000),
                **plan.options,
            ),
        )
        outcomes: list[asyncio.Task[Any]] = []
        while not self.is_stopping:
            count = chance.randint(1, 15)
            outcomes = [each for each in outcomes if not each.done()]
            for _ in range(count):
                if plan.is_one_by_one:
                    await self._send_one(producer, stream)
                elif (outcome := self._send_soon(producer, stream)) is not None:
                    outcomes.append(outcome)
            await asyncio.sleep(chance.expovariate(plan.per_second / count))
        await asyncio.gather(*outcomes)
        await producer.close()

    async def _send_one(self, producer: Any, stream: Stream) -> None:
        stream.sent += 1
        number = stream.sent
        await self._outcome_of(stream, number, producer.send(stream.payload(number)))

    def _send_soon(self, producer: Any, stream: Stream) -> asyncio.Task[Any] | None:
        number = stream.sent + 1
        key = stream.key(number)
        try:
            awaitable = producer.send_nowait(stream.payload(number), partition_key=key)
        except ProducerQueueFullError:
            return None
        stream.sent = number
        return self._spawn(self._outcome_of(stream, number, awaitable), f"{stream.name} {number}")

    async def _outcome_of(self, stream: Stream, number: int, awaitable: Any) -> None:
        begun = self.world.now()
        try:
            message_id = await awaitable
        except PulsarError as error:
            stream.failed.add(number)
            self.model.log.note(self.world.now(), "failed", stream.name, number, type(error))
        else:
            self.model.on_confirmed(stream, number, message_id)
            self.model.log.note(self.world.now(), "confirmed", stream.name, number, message_id)
        took = self.world.now() - begun
        is_in_time = took <= SEND_TIMEOUT_SECONDS + SLACK_SECONDS
        self.model.require(IN_TIME, holds=is_in_time, detail=(stream.name, number, took))

    # --- consuming -------------------------------------------------------------------------

    async def _consume(
        self, plan: StreamPlan, how: SubscriptionPlan, subscription: Subscription, number: int
    ) -> None:
        """Consume, and now and then leave and come back."""
        chance = self.world.chance(f"consume {subscription.name} {number}")
        client = self._clients[f"consuming-{number % 2 + 1}"]

        def subscribe() -> Awaitable[Consumer | MultiTopicsConsumer]:
            return client.subscribe(
                plan.topic,
                how.name,
                consumer_type=how.type,
                consumer_name=f"{subscription.name}-{number}",
                initial_position=InitialPosition.Earliest,
                receiver_queue_size=chance.choice((1, 10, 200)),
                negative_ack_redelivery_delay_ms=2_000,
                # Beyond it the oldest is dropped, and is back only after a reconnect.
                max_pending_chunked_message=0,
            )

        while not self.is_done:
            consumer = await self._opened(subscription.name, subscribe)
            leaves_at = self.world.now() + chance.expovariate(1 / 120)
            async with consumer:
                await self._receive(consumer, how, subscription, chance, leaves_at)

    async def _receive(
        self,
        consumer: Any,
        how: SubscriptionPlan,
        subscription: Subscription,
        chance: random.Random,
        leaves_at: float,
    ) -> None:
        refused: set[int] = set()
        while not self.is_done:
            if self.world.now() > leaves_at and how.consumers > 1 and not self.is_stopping:
                return
            try:
                message = await consumer.receive(timeout_millis=1000)
            except TimeoutError:
                continue
            number = self.model.on_delivered(
                subscription, message.data(), message.partition_key(), message.message_id()
            )
            self.model.log.note(self.world.now(), "got", subscription.name, number)
            if chance.random() < how.nack_share and number not in refused:
                refused.add(number)
                consumer.negative_acknowledge(message)
            elif how.is_cumulative:
                await consumer.acknowledge_cumulative(message)
            else:
                await consumer.acknowledge(message)
            if chance.random() < 0.02:
                await asyncio.sleep(chance.uniform(0, 0.5))

    async def _read(self, plan: StreamPlan, stream: Stream) -> None:
        client = self._clients["consuming-2"]
        reader = await self._opened(
            "reader", lambda: client.create_reader(plan.topic, MessageId.earliest)
        )
        newest = 0
        async with reader:
            while not self.is_done:
                try:
                    message = await reader.read_next(timeout_millis=1000)
                except TimeoutError:
                    continue
                number = stream.number_of(message.data())
                self.model.require(READ_ONCE, holds=number > newest, detail=(number, newest))
                newest = number

    # --- the end ---------------------------------------------------------------------------

    async def _arrived(self) -> None:
        until = self.world.now() + HEAL_SECONDS
        while (missing := self.model.missing()) and self.world.now() < until:  # noqa: ASYNC110 - no event says so
            await asyncio.sleep(1)
        for each in self.model.subscriptions:
            lost = missing.get(each.name, [])
            detail = (each.name, len(lost), lost[:5])
            self.model.require(ARRIVES, holds=not lost, detail=detail)
            self.model.held[ARRIVES] += len(each.stream.confirmed)

    async def _acknowledged(self) -> None:
        """Nothing is left for any subscription."""
        until = self.world.now() + HEAL_SECONDS
        while (left := self._backlogs()) and self.world.now() < until:  # noqa: ASYNC110 - the same
            await asyncio.sleep(1)
        self.model.require(ACKED, holds=not left, detail=left)

    def _backlogs(self) -> dict[str, int]:
        found = {}
        for plan in PLANS:
            name = TopicName.parse(plan.topic)
            parts = [name.partition(i) for i in range(plan.partitions)] or [name]
            for part in parts:
                topic = self.world.broker.service.topics.loaded(part)
                assert topic is not None, part
                for each in plan.subscriptions:
                    subscription = topic.subscriptions.get(each.name)
                    count = -1 if subscription is None else subscription.cursor.backlog_count()
                    if count:
                        found[f"{part} {each.name}"] = count
        return found

    def _check_view(self, view: TableView) -> None:
        keyed = next(each for each in self.model.subscriptions if each.name == "keyed/key-shared")
        for key, newest in keyed.newest_of_key.items():
            value = view.get(key)
            number = 0 if value is None else keyed.stream.number_of(value)
            self.model.require(NEWEST, holds=number == newest, detail=(key, number, newest))

    async def _check_ended(self) -> None:
        """Clients are closed; what is left is the broker's and the proxy's."""
        for name, client in self._clients.items():
            used = client.context.memory_limit.current_bytes
            self.model.require(ENDED, holds=used == 0, detail=(name, "memory", used))
        await asyncio.sleep(30)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        tasks = [each.get_name() for each in asyncio.all_tasks() if "lient" in each.get_name()]
        self.model.require(ENDED, holds=not tasks, detail=tasks)
        left = self.world.proxy.connections_count
        self.model.require(ENDED, holds=left == 0, detail=f"{left} connections")

    def _outcome(self) -> Outcome:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        return Outcome(
            held=self.model.held,
            faults=self.world.proxy.seen,
            sent=sum(each.sent for each in self.model.streams),
            confirmed=sum(len(each.confirmed) for each in self.model.streams),
            delivered=sum(each.delivered for each in self.model.subscriptions),
            digest=f"{self.model.log.digest}-{loop.network.digest:08x}",
        )


class SoakError(AssertionError):
    """A soak failed; the message has the command that shows it again."""


def run_soak(seed: int, minutes: float) -> Outcome:
    """Run a soak.

    Raises:
        SoakError: An invariant does not hold, or something raised what it may not.
    """

    async def main() -> Outcome:
        return await Soak(seed, minutes).run()

    print(f"client soak, seed {seed}, {minutes:g} minutes")
    try:
        with _silence():
            return run_simulated(main(), latency_seconds=LATENCY_SECONDS)
    except Exception as error:
        again = f"python -m tests.simulation.client_soak --seed {seed} --minutes {minutes:g}"
        raise SoakError(f"seed {seed}: {error!r}; again: {again}") from error


@contextmanager
def _silence() -> Iterator[None]:
    """Thousands of expected warnings cost time."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)


def main() -> int:
    """Returns 1 if a soak failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.client_soak")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1, help="how many, from --seed on")
    arguments = parser.parse_args()
    failed = 0
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        begun = time.perf_counter()
        try:
            outcome = run_soak(seed, arguments.minutes)
        except SoakError as error:
            failed += 1
            print(error)
            continue
        print(f"  {outcome.digest}, {time.perf_counter() - begun:.1f} s of real time")
        print(
            f"  {outcome.sent} sent, {outcome.confirmed} confirmed, {outcome.delivered} delivered"
        )
        for name in INVARIANTS:
            print(f"  held {outcome.held[name]:>10,}  {name}")
        for name, count in sorted(outcome.faults.items()):
            print(f"  met  {count:>10,}  {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
