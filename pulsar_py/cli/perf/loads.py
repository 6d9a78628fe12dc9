"""The loads of `pulsar-py perf`: producing, consuming, reading, and both ends at once (edge).

Source: PerformanceProducer, PerformanceConsumer and PerformanceReader in Pulsar's test client.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulsar_py.admin_client import topics
from pulsar_py.admin_client.async_client import AsyncAdminClient
from pulsar_py.admin_client.settings import answer_of_error
from pulsar_py.cli.admin.values import position
from pulsar_py.cli.perf.meter import Meter
from pulsar_py.client.messages.message import Message
from pulsar_py.client.producing.send_result import SendResult
from pulsar_py.client.security.crypto_keys import CryptoKeyReader
from pulsar_py.client.shared.enums import (
    CompressionType,
    ConsumerType,
    InitialPosition,
    ProducerAccessMode,
)
from pulsar_py.common.errors import ClientError, ClientTimeoutError, PulsarError, ServiceError
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.common.message_id import MessageId

if TYPE_CHECKING:
    from pulsar_py.cli.connecting.connection import Connection
    from pulsar_py.client.client import Client
    from pulsar_py.client.producing.producer import Producer

Receive = Callable[[], Awaitable[Message[Any] | None]]
_WAIT_MILLIS = 200
_SENT = "pulsar-py-perf-sent"
_ENDS = 2  # of a range
_ADMIN_SECONDS = 60.0
_ACROSS_PARTITIONS = 50_000


class PerfError(ClientError):
    """A run did not do what it was for."""


class Run:
    """One run: when it is over, and what it counted."""

    def __init__(self, given: Mapping[str, Any], done: str, clock: Clock) -> None:
        """`num_messages` and `test_duration` bound it; 0 is no bound."""
        self.clock = clock
        self._done = done
        self._limit: int = given["num_messages"]
        self._seconds: float = given["test_duration"]
        self._interval: float = given["stats_interval_seconds"]
        self._is_json: bool = given["output"] == "json"
        self._histogram_path: str | None = given["histogram_file"]
        self.begun_count = 0
        self.start()

    def start(self) -> None:
        """Begin to count time: connecting and subscribing are no part of it."""
        self.started = self.clock.monotonic_seconds()
        self.meter = Meter(self._done, self.started, is_json=self._is_json)

    def begin_one(self) -> bool:
        """Whether another message is to be begun; it counts as begun then."""
        if self.is_over():
            return False
        self.begun_count += 1
        return True

    def is_over(self) -> bool:
        """Whether there were enough messages, or time."""
        passed = self.clock.monotonic_seconds() - self.started
        return (0 < self._limit <= self.begun_count) or (0 < self._seconds <= passed)

    async def report(self) -> None:
        """Print a line every interval, until it is cancelled."""
        while True:
            await self.clock.sleep(self._interval)
            self._say(self.meter.line(self.clock.monotonic_seconds()))

    def end(self) -> None:
        """Print the last line."""
        self._say(self.meter.summary(self.clock.monotonic_seconds()))
        if self._histogram_path is not None:
            Path(self._histogram_path).write_text(self.meter.histogram(), encoding="utf-8")

    def _say(self, line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def topics_of(given: Mapping[str, Any]) -> Sequence[str]:
    """The topic, or with `-t` that many whose names end in numbers."""
    count = given["num_topics"]
    name, separator = given["topic"], given.get("separator", "-")
    return [name] if count == 1 else [f"{name}{separator}{index}" for index in range(count)]


def subscriptions_of(given: Mapping[str, Any]) -> Sequence[str]:
    """The subscriptions' names, or with `-ns` that many, whose names end in numbers."""
    names: list[str] = given["subscriptions"].split(",")
    count = given["num_subscriptions"]
    if count <= len(names):
        return names
    return [f"{names[0]}-{index}" for index in range(count)]


def payloads_of(given: Mapping[str, Any]) -> Sequence[bytes]:
    """What is sent in turn: zeros of a size, or the payloads of a file.

    Raises:
        ValueError: The file has none.
    """
    path = given["payload_file"]
    if path is None:
        return [bytes(given["size"])]
    delimiter = given["payload_delimiter"].replace("\\n", "\n").encode()
    found = [each for each in Path(path).read_bytes().split(delimiter) if each]
    if not found:
        raise ValueError(
            f"{path}: the file has no payload; expected payloads with {delimiter!r} between"
        )
    return found


def delays_of(given: Mapping[str, Any], chance: random.Random) -> Iterator[timedelta | None]:
    """The delay of each message, one after the other.

    Raises:
        ValueError: The range is not one of two whole numbers, the lower one first.
    """
    if not given["delay_range"]:
        return itertools.repeat(timedelta(seconds=given["delay"]) if given["delay"] else None)
    ends = given["delay_range"].split(",")
    if len(ends) != _ENDS or not all(each.strip().isdigit() for each in ends):
        raise ValueError(f"--delay-range {given['delay_range']}: expected two numbers, as 1,5")
    low, high = map(int, ends)
    if low > high:
        raise ValueError(f"--delay-range {low},{high}: the lower number comes first")
    return (timedelta(seconds=chance.randint(low, high)) for _ in itertools.count())


def formatted(payload: bytes, number: int, nanoseconds: int) -> bytes:
    """A payload with its number for `%i`, and a time for `%t`."""
    return payload.replace(b"%i", b"%d" % number).replace(b"%t", b"%d" % nanoseconds)


async def _create_topics(where: Connection, given: Mapping[str, Any]) -> None:
    """Create what `--partitions` asks for; topics that are there with as many stay."""
    if (partitions := given["partitions"]) is None:
        return
    async with AsyncAdminClient(where.admin_settings(_ADMIN_SECONDS)) as admin:
        for topic in topics_of(given):
            call = (
                topics.create_partitioned_topic(topic, partitions)
                if partitions
                else topics.create_topic(topic)
            )
            try:
                await admin.call(call)
            except ServiceError as error:
                if (answer_of_error(error) or (0, ""))[0] != HTTPStatus.CONFLICT:
                    raise
                there = (await admin.call(topics.partitions(topic))).partitions
                if there != partitions:
                    raise PerfError(f"{topic}: it is there, with {there} partitions") from None


async def produce(where: Connection, options: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Publish at a rate; latency is from sending to the receipt."""
    run = Run(given, "produced", SystemClock())
    await _create_topics(where, given)
    async with where.client(**options) as client:
        await _with_reports(run, [_publish_all(client, given, run)])


async def consume(where: Connection, options: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Receive and acknowledge; latency is from publishing, by the clocks of both machines."""
    run = Run(given, "received", SystemClock())
    async with where.client(**options) as client:
        jobs = [
            await _consumer(client, topic, name, given, run)
            for topic in topics_of(given)
            for name in subscriptions_of(given)
            for _ in range(given["num_consumers"])
        ]
        await _with_reports(run, jobs)


async def read(where: Connection, options: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Read from a message on."""
    run = Run(given, "read", SystemClock())
    ledger_id, entry_id = position(given["start_message_id"])
    start = {"earliest": MessageId.earliest, "latest": MessageId.latest}.get(
        given["start_message_id"]
    ) or MessageId(ledger_id=ledger_id, entry_id=entry_id)
    async with where.client(**options) as client:
        jobs = []
        for topic in topics_of(given):
            reader = await client.create_reader(
                topic,
                start,
                receiver_queue_size=given["receiver_queue_size"],
                max_pending_chunked_message=given["max_chunked_msg"],
                auto_ack_oldest_chunked_message_on_queue_full=given["auto_ack_chunk_q_full"],
            )
            jobs.append(_receive(_or_none(reader.read_next), run, given["rate"]))
        await _with_reports(run, jobs)


async def latency(where: Connection, options: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Publish and receive at once; latency is from sending to receiving, by one clock.

    A property of each message has the time when it was sent.
    """
    run = Run(given, "received", SystemClock())
    sending = Run(given, "produced", run.clock)
    await _create_topics(where, given)
    async with where.client(**options) as client:
        jobs = [await _consumer(client, topic, "latency", given, run) for topic in topics_of(given)]
        await _with_reports(run, [*jobs, _publish_all(client, given, sending, is_stamped=True)])


async def _with_reports(run: Run, jobs: Sequence[Awaitable[None]]) -> None:
    """Run all jobs to their end, with lines between."""
    run.start()
    try:
        async with asyncio.TaskGroup() as group:
            reports = group.create_task(run.report())
            try:
                await asyncio.gather(*jobs)
            finally:
                reports.cancel()
    finally:
        run.end()


async def _publish_all(
    client: Client, given: Mapping[str, Any], run: Run, *, is_stamped: bool = False
) -> None:
    keys: dict[str, Any] = {}  # Any: as the client takes them
    if given["encryption_key_name"]:
        keys = {
            "encryption_key": given["encryption_key_name"],
            "crypto_key_reader": CryptoKeyReader(given["encryption_key_value_file"] or ""),
        }
    count = len(topics_of(given)) * given["num_producers"]
    names = itertools.count()
    producers = [
        await client.create_producer(
            topic,
            compression_type=CompressionType[given["compression"]],
            batching_enabled=not (given["disable_batching"] or given["chunking"]),
            batching_max_publish_delay_ms=given["batch_time_window"],
            batching_max_messages=given["batch_max_messages"],
            batching_max_allowed_size_in_bytes=given["batch_max_bytes"],
            chunking_enabled=given["chunking"],
            max_pending_messages_across_partitions=(
                given["max_outstanding_across_partitions"] or _ACROSS_PARTITIONS
            ),
            block_if_queue_full=True,
            producer_name=_numbered(given["producer_name"], count, next(names)),
            access_mode=ProducerAccessMode[given["access_mode"]],
            send_timeout_millis=int(1000 * given["send_timeout"]),
            **keys,
        )
        for topic in topics_of(given)
        for _ in range(given["num_producers"])
    ]
    run.start()
    rate = given["rate"] / len(producers)
    await asyncio.gather(
        *(_publish(each, given, rate, run, is_stamped=is_stamped) for each in producers)
    )


def _numbered(name: str | None, count: int, number: int) -> str | None:
    return name if name is None or count == 1 else f"{name}-{number}"


def _keys(mode: str | None, chance: random.Random) -> Iterator[str | None]:
    """The key of each message, one after the other."""
    for number in itertools.count():
        if mode is None:
            yield None
        else:
            yield str(number if mode == "autoIncrement" else chance.getrandbits(31))


async def _publish(
    producer: Producer[Any],
    given: Mapping[str, Any],
    rate: float,
    run: Run,
    *,
    is_stamped: bool,
) -> None:
    """Publish at a rate, with at most so many messages without a receipt."""
    payloads = itertools.cycle(payloads_of(given))
    keys = _keys(given["message_key_generation_mode"], random.Random())  # noqa: S311 - guards nothing
    delays = delays_of(given, random.Random())  # noqa: S311 - guards nothing
    room = asyncio.Semaphore(given["max_outstanding"] or 1000)
    failures: Counter[str] = Counter()  # by message; only a few differ

    def send() -> None:
        sent = run.clock.monotonic_seconds()
        payload = next(payloads)
        if given["format_payload"]:
            payload = formatted(payload, number, int(1e9 * sent))

        def done(result: SendResult) -> None:
            room.release()
            if (error := result.exception()) is not None:
                failures[str(error)] += 1
            else:
                now = run.clock.monotonic_seconds()
                is_warm = sent >= run.started + given["warmup_time"]
                run.meter.add(len(payload), now - sent if is_warm else None)

        producer.send_nowait(
            payload,
            properties={_SENT: repr(sent)} if is_stamped else None,
            key=next(keys),
            deliver_after=next(delays),
            event_timestamp=run.clock.wall_time_millis() if given["set_event_time"] else None,
        ).add_done_callback(done)

    number = 0
    while not (failures and given["exit_on_failure"]) and run.begin_one():
        if rate > 0:
            due = run.started + number / rate
            await run.clock.sleep(max(0.0, due - run.clock.monotonic_seconds()))
        await room.acquire()
        send()
        number += 1
    with suppress(PulsarError):  # it is among `failures`
        await producer.flush()
    if failures:
        most, _ = failures.most_common(1)[0]
        raise PerfError(f"{failures.total()} messages failed, most of them by: {most}")


async def _consumer(
    client: Client, topic: str, name: str, given: Mapping[str, Any], run: Run
) -> Awaitable[None]:
    """A consumer that is subscribed already, and the job that receives with it."""
    consumer = await client.subscribe(
        topic,
        name,
        consumer_type=ConsumerType[given["subscription_type"].replace("_", "")],
        initial_position=InitialPosition[given["subscription_position"]],
        receiver_queue_size=given["receiver_queue_size"],
        max_pending_chunked_message=given["max_chunked_msg"],
        auto_ack_oldest_chunked_message_on_queue_full=given["auto_ack_chunk_q_full"],
        **_of_consume(given),
    )
    receive = _or_none(consumer.receive)

    async def next_message() -> Message[Any] | None:
        message = await receive()
        if message is not None:
            await consumer.acknowledge(message)
        return message

    return _receive(next_message, run, given["rate"] if "acks_delay_millis" in given else 0.0)


def _of_consume(given: Mapping[str, Any]) -> dict[str, Any]:  # Any: as the client takes them
    """Options that `consume` alone has."""
    if "acks_delay_millis" not in given:
        return {}
    found: dict[str, Any] = {
        "ack_grouping_time_ms": given["acks_delay_millis"],
        "batch_index_ack_enabled": given["batch_index_ack"],
        "replicate_subscription_state_enabled": given["replicated"],
        "max_total_receiver_queue_size_across_partitions": given[
            "receiver_queue_size_across_partitions"
        ],
    }
    if given["expire_time_incomplete_chunked_messages"]:
        found["expire_time_of_incomplete_chunked_message_ms"] = given[
            "expire_time_incomplete_chunked_messages"
        ]
    if given["encryption_key_value_file"]:
        found["crypto_key_reader"] = CryptoKeyReader("", given["encryption_key_value_file"])
    return found


def _or_none(receive: Callable[[int], Awaitable[Message[Any]]]) -> Receive:
    """A message, or None after a while without one: then it is looked whether the run is over."""

    async def next_message() -> Message[Any] | None:
        try:
            return await receive(_WAIT_MILLIS)
        except ClientTimeoutError:
            return None

    return next_message


async def _receive(next_message: Receive, run: Run, rate: float = 0.0) -> None:
    number = 0
    while not run.is_over():
        if rate > 0:
            due = run.started + number / rate
            await run.clock.sleep(max(0.0, due - run.clock.monotonic_seconds()))
        message = await next_message()
        if message is not None and run.begin_one():
            number += 1
            run.meter.add(message.size(), _age_seconds(message, run.clock))


def _age_seconds(message: Message[Any], clock: Clock) -> float:
    """Since it was sent, exactly if it says when; otherwise to the millisecond."""
    if sent := message.properties().get(_SENT):
        return clock.monotonic_seconds() - float(sent)
    return max(0, clock.wall_time_millis() - message.publish_timestamp()) / 1000
