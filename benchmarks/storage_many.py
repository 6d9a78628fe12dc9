"""Measure what many names and topics with state of their own cost; a part of `make bench-storage`.

Alone: `python -m benchmarks.storage_many`. One topic with deduplication gets messages of 100,000
producer names, which come and go; then a thousand of them publish again, one snapshot is due, and
counted is what the process writes meanwhile, beside the longest answer to a PING; and once more in
this process, where the longest turn of the broker's loop is counted in CPU time. Ten thousand
topics with deduplication, a policy and a delayed message each are compared with as many plain ones
with the same subscription: memory a topic, and the time in which all are opened after a restart.
"""

from __future__ import annotations

import argparse
import http.client
import shutil
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import crc32c
import uvloop

from benchmarks.limited_rows import exit_with, print_limited
from benchmarks.longest_turn import TimedBroker
from benchmarks.ping import Pinger
from benchmarks.raw_client import RawConnection, frame
from benchmarks.targets import Target, start_ours
from pulsar_py.cli.standalone import spare_the_loop
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSubscribe, MessageMetadata

NAMES, TOPICS = 100_000, 10_000
AT_ONCE = 200
NAMESPACE = "persistent://public/default"
SETTLE_SECONDS = 3
HOUR_MILLIS = 3_600_000

LIMITS = {
    "names_megabytes": 30.0,
    "names_longest_ping_millis": 20.0,
    "names_longest_turn_cpu_millis": 20.0,
    "topic_kilobytes_above_plain": 15.0,
    "open_seconds_to_plain": 2.0,
}


def _entry(name: str, sequence_id: int, *, delay_millis: int = 0) -> bytes:
    now = int(time.time() * 1000)
    metadata = MessageMetadata(producer_name=name, sequence_id=sequence_id, publish_time=now)
    if delay_millis:
        metadata.deliver_at_time = now + delay_millis
    head = metadata.SerializeToString()
    checked = struct.pack(">I", len(head)) + head + b"x" * 100
    return b"\x0e\x01" + struct.pack(">I", crc32c.crc32c(checked)) + checked


def _producer(connection: RawConnection, topic: str, number: int, name: str) -> bytes:
    command = BaseCommand(type=BaseCommand.PRODUCER)
    producer = command.producer
    producer.topic, producer.producer_id, producer.producer_name = topic, number, name
    producer.request_id = connection.next_request_id()
    producer.user_provided_producer_name = True
    return frame(command)


def _send(number: int, stored: bytes, sequence_id: int) -> bytes:
    command = BaseCommand(type=BaseCommand.SEND)
    command.send.producer_id, command.send.sequence_id = number, sequence_id
    return frame(command, stored)


def _close(connection: RawConnection, number: int) -> bytes:
    command = BaseCommand(type=BaseCommand.CLOSE_PRODUCER)
    command.close_producer.producer_id = number
    command.close_producer.request_id = connection.next_request_id()
    return frame(command)


def _lookup(connection: RawConnection, topic: str) -> bytes:
    command = BaseCommand(type=BaseCommand.LOOKUP)
    command.lookupTopic.topic = topic
    command.lookupTopic.request_id = connection.next_request_id()
    return frame(command)


def _subscribe(connection: RawConnection, topic: str, number: int) -> bytes:
    command = BaseCommand(type=BaseCommand.SUBSCRIBE)
    subscribe = command.subscribe
    subscribe.topic, subscribe.subscription, subscribe.consumer_id = topic, "many", number
    subscribe.subType = CommandSubscribe.Shared
    subscribe.request_id = connection.next_request_id()
    flow = BaseCommand(type=BaseCommand.FLOW)
    flow.flow.consumer_id, flow.flow.messagePermits = number, 1000
    return frame(command) + frame(flow)


async def _answers(connection: RawConnection, expected: int, count: int) -> None:
    while count:
        answer = await connection.answer()
        if answer.type == BaseCommand.ERROR:
            raise RuntimeError(f"a request was answered with {answer}")
        count -= answer.type == expected


async def _publish_by_names(port: int, numbers: range, sequence_id: int) -> None:
    """One message of each producer, which leaves again."""
    connection = await RawConnection.connect("127.0.0.1", port)
    topic = f"{NAMESPACE}/names"
    await connection.lookup(topic)
    for first in range(numbers.start, numbers.stop, AT_ONCE):
        some = range(first, min(first + AT_ONCE, numbers.stop))
        names = [f"producer-of-orders-{number:06}" for number in some]
        requests = [
            _producer(connection, topic, number, name)
            for number, name in zip(some, names, strict=True)
        ]
        connection.write(b"".join(requests))
        await _answers(connection, BaseCommand.PRODUCER_SUCCESS, len(some))
        sends = [
            _send(number, _entry(name, sequence_id), sequence_id)
            for number, name in zip(some, names, strict=True)
        ]
        connection.write(b"".join(sends))
        connection.write(b"".join(_close(connection, number) for number in some))
        await _answers(connection, BaseCommand.SUCCESS, len(some))
    connection.close()


def _written_megabytes(target: Target) -> float:
    for line in Path(f"/proc/{target.pid}/io").read_text().splitlines():
        if line.startswith("wchar:"):
            return int(line.split()[1]) / 1e6
    raise RuntimeError("the system does not count writes")


def measure_names(names: int, directory: Path) -> dict[str, float]:
    """Figures of so many producer names of one topic."""
    figures: dict[str, float] = {"names": names}
    settings = {
        "brokerDeduplicationEnabled": "true",
        "brokerDeduplicationMaxNumberOfProducers": str(names),
        # What the write cache holds is not part of what names take.
        "flushInterval": "1000",
    }
    target = start_ours(directory, settings)
    try:
        uvloop.run(_publish_by_names(target.port, range(1000), 0))
        time.sleep(SETTLE_SECONDS)
        before = target.resident_megabytes()
        pinger = Pinger(target.port)
        pinger.start()
        started = time.perf_counter()
        uvloop.run(_publish_by_names(target.port, range(1000, names), 0))
        figures["names_seconds"] = time.perf_counter() - started
        time.sleep(SETTLE_SECONDS)
        figures["names_megabytes"] = target.resident_megabytes() - before
        written = _written_megabytes(target)
        uvloop.run(_publish_by_names(target.port, range(1000), 1))
        time.sleep(SETTLE_SECONDS)
        figures["thousand_more_written_megabytes"] = _written_megabytes(target) - written
        pinger.stop()
        figures["names_longest_ping_millis"] = pinger.longest_millis
    finally:
        target.stop()
    return figures


def measure_turns(names: int, directory: Path) -> dict[str, float]:
    """The longest turn of the loop meanwhile, in CPU time of its thread: of a broker in memory."""
    del directory
    spare_the_loop()
    settings = {
        "brokerDeduplicationEnabled": True,
        "brokerDeduplicationMaxNumberOfProducers": names,
    }
    with TimedBroker(**settings) as broker:
        uvloop.run(_publish_by_names(broker.port, range(1000), 0))
        broker.take()
        uvloop.run(_publish_by_names(broker.port, range(1000, names), 0))
        uvloop.run(_publish_by_names(broker.port, range(1000), 1))
        time.sleep(SETTLE_SECONDS)
        return {"names_longest_turn_cpu_millis": broker.take()[0] * 1e3}


def _topic(number: int) -> str:
    return f"{NAMESPACE}/many-{number:05}"


async def _open_all(target: Target, count: int) -> RawConnection:
    """A consumer on each topic, by one connection, which is left open."""
    connection = await RawConnection.connect("127.0.0.1", target.port)
    for first in range(0, count, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, count))
        connection.write(b"".join(_lookup(connection, _topic(number)) for number in numbers))
        await _answers(connection, BaseCommand.LOOKUP_RESPONSE, len(numbers))
        requests = [_subscribe(connection, _topic(number), number) for number in numbers]
        connection.write(b"".join(requests))
        await _answers(connection, BaseCommand.SUCCESS, len(numbers))
    return connection


async def _fill(target: Target, count: int, *, is_plain: bool) -> None:
    """A message in each topic, delayed unless plain."""
    connection = await _open_all(target, count)
    for first in range(0, count, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, count))
        requests = [
            _producer(connection, _topic(number), number, f"p{number}") for number in numbers
        ]
        connection.write(b"".join(requests))
        await _answers(connection, BaseCommand.PRODUCER_SUCCESS, len(numbers))
        delay_millis = 0 if is_plain else HOUR_MILLIS
        sends = [
            _send(number, _entry(f"p{number}", 0, delay_millis=delay_millis), 0)
            for number in numbers
        ]
        connection.write(b"".join(sends))
        connection.write(b"".join(_close(connection, number) for number in numbers))
        await _answers(connection, BaseCommand.SUCCESS, len(numbers))
    connection.close()


def _set_policies(target: Target, count: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", target.web_port, timeout=60)
    for number in range(count):
        path = f"/admin/v2/persistent/public/default/many-{number:05}/maxConsumers"
        connection.request("POST", path, b"7", {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{path} was answered with {answer.status}")
    connection.close()


def _open_again(target: Target, count: int) -> float:
    async def opened() -> float:
        started = time.perf_counter()
        connection = await _open_all(target, count)
        seconds = time.perf_counter() - started
        connection.close()
        return seconds

    return uvloop.run(opened())


def _measure_kind(count: int, directory: Path, *, is_plain: bool) -> tuple[float, float, float]:
    """Megabytes that the opened topics take, and wall and CPU seconds of opening them."""
    settings = {} if is_plain else {"brokerDeduplicationEnabled": "true"}
    data_dir = Path(tempfile.mkdtemp(prefix="many-", dir=directory))
    target = start_ours(directory, settings, data_dir=data_dir)
    try:
        uvloop.run(_fill(target, count, is_plain=is_plain))
        if not is_plain:
            _set_policies(target, count)
        target.data_dir = None
        target.stop()
        target = start_ours(directory, settings, data_dir=data_dir)
        before, cpu = target.resident_megabytes(), target.cpu_seconds()
        seconds = _open_again(target, count)
        cpu = target.cpu_seconds() - cpu
        return target.resident_megabytes() - before, seconds, cpu
    finally:
        target.data_dir = data_dir
        target.stop()
        shutil.rmtree(data_dir, ignore_errors=True)


def measure_topics(count: int, directory: Path) -> dict[str, float]:
    """Figures of so many topics with state of their own, beside plain ones."""
    plain_megabytes, plain_seconds, plain_cpu = _measure_kind(count, directory, is_plain=True)
    megabytes, seconds, cpu = _measure_kind(count, directory, is_plain=False)
    return {
        "topics": count,
        "plain_topic_kilobytes": plain_megabytes / count * 1024,
        "topic_kilobytes_above_plain": (megabytes - plain_megabytes) / count * 1024,
        "plain_open_seconds": plain_seconds,
        "open_seconds": seconds,
        "open_seconds_to_plain": seconds / plain_seconds,
        "open_cpu_to_plain": cpu / plain_cpu,
    }


def print_many(figures: dict[str, float]) -> list[str]:
    """One line a figure; returns what is beyond its limit."""
    return print_limited("many names and topics", figures, LIMITS)


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=int, default=NAMES)
    parser.add_argument("--topics", type=int, default=TOPICS)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    arguments = parser.parse_args()
    measures: list[tuple[Callable[[int, Path], dict[str, float]], int]] = [
        (measure_names, arguments.names),
        (measure_turns, arguments.names),
        (measure_topics, arguments.topics),
    ]
    missed = []
    for measure, count in measures:
        if count:
            missed += print_many(measure(count, arguments.directory))
    exit_with(missed)


if __name__ == "__main__":
    main()
