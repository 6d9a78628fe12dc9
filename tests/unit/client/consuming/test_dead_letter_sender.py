"""Dead letters and retry letters are published, then acknowledged; in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pulsar_py.client.brokers.client_context import ClientContext
from pulsar_py.client.consuming.dead_letter import ConsumerDeadLetterPolicy, plan_reconsume
from pulsar_py.client.consuming.dead_letter_sender import (
    MAX_MOVING,
    DeadLetterNames,
    DeadLetterProducers,
    DeadLetterSender,
    copy_options,
)
from pulsar_py.client.messages.message import EntryKey, Message, ReceivedEntry
from pulsar_py.common.errors import (
    AlreadyClosedError,
    OperationNotSupportedError,
    PersistenceError,
)
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import KeyValue, MessageMetadata
from pulsar_py.testing.clock import VirtualClock, run_virtual

TOPIC = "persistent://public/default/t-partition-1"
NAMES = DeadLetterNames(TOPIC, "sub", "me")


class Source:
    """A consumer that is told what happens."""

    def __init__(self) -> None:
        self.acknowledged: list[str] = []
        self.redelivered: list[EntryKey] = []

    async def acknowledge(self, message: Message | MessageId) -> None:
        message_id = message.message_id() if isinstance(message, Message) else message
        self.acknowledged.append(str(message_id))

    def redeliver(self, entries: Sequence[EntryKey]) -> None:
        self.redelivered.extend(entries)


class Topics:
    """Where letters go; makes producers."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any, dict[str, Any]]] = []
        self.made: list[tuple[str, dict[str, Any]]] = []
        self.open_count = 0
        self.error: Exception | None = None
        self.error_making: Exception | None = None
        self.seconds = 0.1

    async def make(self, topic: str, **options: Any) -> Outgoing:
        await asyncio.sleep(0.1)
        if self.error_making is not None:
            raise self.error_making
        self.made.append((topic, options))
        self.open_count += 1
        return Outgoing(self, topic)


class Outgoing:
    def __init__(self, topics: Topics, topic: str) -> None:
        self.topics = topics
        self.topic = topic

    async def send(self, content: Any, **options: Any) -> MessageId:
        await asyncio.sleep(self.topics.seconds)
        if self.topics.error is not None:
            raise self.topics.error
        self.topics.sent.append((self.topic, content, options))
        return MessageId(100, len(self.topics.sent))

    async def close(self) -> None:
        self.topics.open_count -= 1

    def abandon(self) -> None:
        self.topics.open_count -= 1


def message(entry_id: int, redelivery_count: int = 0, **fields: Any) -> Message:
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=0, **fields)
    entry = ReceivedEntry(
        (1, entry_id), TOPIC, metadata, partition_index=1, redelivery_count=redelivery_count
    )
    return Message(entry, -1, None, b"data%d" % entry_id)


def letters_of(
    source: Source,
    topics: Topics,
    policy: ConsumerDeadLetterPolicy,
    *,
    is_retry_enabled: bool = False,
) -> DeadLetterSender:
    context = cast("ClientContext", SimpleNamespace(clock=VirtualClock(), random=random.Random(1)))
    return DeadLetterSender(
        source,
        policy,
        names=NAMES,
        context=context,
        producers=DeadLetterProducers(
            topics.make,
            NAMES,
            context,
            initial_subscription_name=policy.initial_subscription_name,
        ),
        is_retry_enabled=is_retry_enabled,
    )


DLQ = "persistent://public/default/t-sub-DLQ"
RETRY = "persistent://public/default/t-sub-RETRY"


def test_a_message_within_the_limit_is_delivered() -> None:
    async def work() -> None:
        dead_letters = letters_of(Source(), Topics(), ConsumerDeadLetterPolicy(2))
        assert not dead_letters.take_over(message(1, redelivery_count=2))
        await dead_letters.close()

    run_virtual(work())


def test_a_message_beyond_it_is_moved_then_acknowledged() -> None:
    async def work() -> None:
        source, topics = Source(), Topics()
        dead_letters = letters_of(source, topics, ConsumerDeadLetterPolicy(2))
        assert dead_letters.take_over(message(7, redelivery_count=3))
        await asyncio.sleep(0.15)
        assert source.acknowledged == [], "not before it is stored"
        await asyncio.sleep(0.1)
        assert source.acknowledged == ["1:7:1"]
        ((topic, content, options),) = topics.sent
        assert (topic, content) == (DLQ, b"data7")
        assert options["properties"]["REAL_TOPIC"] == "persistent://public/default/t"
        assert options["properties"]["ORIGIN_MESSAGE_ID"] == "1:7:1"
        await dead_letters.close()
        assert topics.open_count == 0

    run_virtual(work())


def test_the_producer_is_made_once_when_it_is_needed() -> None:
    async def work() -> None:
        topics = Topics()
        dead_letters = letters_of(Source(), topics, ConsumerDeadLetterPolicy(1, None, "keeper"))
        await asyncio.sleep(1)
        assert topics.made == []
        for number in range(250):
            assert dead_letters.take_over(message(number, redelivery_count=2))
        await asyncio.sleep(2)
        ((topic, options),) = topics.made
        assert topic == DLQ
        assert options["initial_subscription_name"] == "keeper"
        assert options["producer_name"].startswith(f"{TOPIC}-sub-me-")
        assert options["producer_name"].endswith("-DLQ")
        assert (options["batching_enabled"], options["chunking_enabled"]) == (False, True)
        assert len(topics.sent) == 250
        await dead_letters.close()

    run_virtual(work())


def test_a_message_that_comes_again_meanwhile_is_not_moved_twice() -> None:
    async def work() -> None:
        topics = Topics()
        dead_letters = letters_of(Source(), topics, ConsumerDeadLetterPolicy(1))
        assert dead_letters.take_over(message(1, redelivery_count=2))
        assert dead_letters.take_over(message(1, redelivery_count=3))
        await asyncio.sleep(1)
        assert len(topics.sent) == 1
        await dead_letters.close()

    run_virtual(work())


@pytest.mark.parametrize("where", ["error", "error_making"])
def test_what_could_not_be_moved_comes_again_later(where: str) -> None:
    async def work() -> None:
        source, topics = Source(), Topics()
        dead_letters = letters_of(source, topics, ConsumerDeadLetterPolicy(1))
        setattr(topics, where, PersistenceError("disk gone"))
        dead_letters.take_over(message(1, redelivery_count=2))
        await asyncio.sleep(0.5)
        assert source.redelivered == []
        await asyncio.sleep(1)
        assert source.redelivered == [(1, 1)]
        assert source.acknowledged == []

        setattr(topics, where, None)
        assert dead_letters.take_over(message(1, redelivery_count=3))
        await asyncio.sleep(1)
        assert source.acknowledged == ["1:1:1"]
        await dead_letters.close()

    run_virtual(work())


def test_all_chunks_of_what_could_not_be_moved_come_again() -> None:
    async def work() -> None:
        source, topics = Source(), Topics()
        dead_letters = letters_of(source, topics, ConsumerDeadLetterPolicy(1))
        topics.error = PersistenceError("disk gone")
        chunked = message(7, redelivery_count=2)
        chunked.entry.chunk_ids = ((1, 4), (1, 6), (1, 7))
        dead_letters.take_over(chunked)
        await asyncio.sleep(2)
        assert source.redelivered == [(1, 4), (1, 6), (1, 7)]
        await dead_letters.close()

    run_virtual(work())


def test_a_producer_that_ended_is_replaced() -> None:
    async def work() -> None:
        source, topics = Source(), Topics()
        dead_letters = letters_of(source, topics, ConsumerDeadLetterPolicy(1))
        topics.error = AlreadyClosedError("fenced")
        dead_letters.take_over(message(1, redelivery_count=2))
        await asyncio.sleep(1)
        topics.error = None
        dead_letters.take_over(message(1, redelivery_count=3))
        await asyncio.sleep(1)
        assert len(topics.made) == 2
        assert source.acknowledged == ["1:1:1"]
        await dead_letters.close()

    run_virtual(work())


def test_too_many_at_once_come_again_later() -> None:
    async def work() -> None:
        source, topics = Source(), Topics()
        dead_letters = letters_of(source, topics, ConsumerDeadLetterPolicy(1))
        for number in range(MAX_MOVING + 2):
            assert dead_letters.take_over(message(number, redelivery_count=2))
        await asyncio.sleep(5)
        assert len(source.acknowledged) == MAX_MOVING
        assert source.redelivered == [(1, MAX_MOVING), (1, MAX_MOVING + 1)]
        await dead_letters.close()

    run_virtual(work())


def test_closing_ends_moves_and_timers() -> None:
    async def work() -> None:
        source, topics = Source(), Topics()
        dead_letters = letters_of(source, topics, ConsumerDeadLetterPolicy(1))
        topics.seconds = 1000
        dead_letters.take_over(message(1, redelivery_count=2))
        await asyncio.sleep(1)
        async with asyncio.timeout(1):
            await dead_letters.close()
        assert not dead_letters.take_over(message(2, redelivery_count=2)), "nobody would move it"
        await asyncio.sleep(100)
        assert (source.acknowledged, source.redelivered) == ([], [])
        assert topics.open_count == 0
        await dead_letters.close()

    run_virtual(work())


def test_abandoning_ends_everything_at_once() -> None:
    async def work() -> None:
        source, topics = Source(), Topics()
        dead_letters = letters_of(source, topics, ConsumerDeadLetterPolicy(1))
        dead_letters.take_over(message(1, redelivery_count=2))
        await asyncio.sleep(0.15)
        dead_letters.abandon()
        assert topics.open_count == 0
        await asyncio.sleep(100)
        assert (source.acknowledged, source.redelivered) == ([], [])

    run_virtual(work())


def test_reconsuming_goes_to_the_retry_topic_then_to_the_dead_letters() -> None:
    async def work() -> None:
        source, topics = Source(), Topics()
        dead_letters = letters_of(
            source, topics, ConsumerDeadLetterPolicy(1), is_retry_enabled=True
        )
        await dead_letters.reconsume_later(message(1), 3000, {"why": "busy"})
        again = message(2, properties=[KeyValue(key="RECONSUMETIMES", value="1")])
        await dead_letters.reconsume_later(again, 3000)
        assert source.acknowledged == ["1:1:1", "1:2:1"]
        (first_topic, _, first), (second_topic, _, second) = topics.sent
        assert (first_topic, second_topic) == (RETRY, DLQ)
        assert first["deliver_after"] == timedelta(seconds=3)
        assert first["properties"]["why"] == "busy"
        assert first["properties"]["RECONSUMETIMES"] == "1"
        assert "deliver_after" not in second
        assert [("producer_name" in options) for _, options in topics.made] == [False, True]
        await dead_letters.close()

    run_virtual(work())


def test_what_could_not_be_reconsumed_is_not_acknowledged() -> None:
    async def work() -> None:
        source, topics = Source(), Topics()
        dead_letters = letters_of(
            source, topics, ConsumerDeadLetterPolicy(1), is_retry_enabled=True
        )
        topics.error = PersistenceError("disk gone")
        with pytest.raises(PersistenceError):
            await dead_letters.reconsume_later(message(1), 0)
        await asyncio.sleep(2)
        assert (source.acknowledged, source.redelivered) == ([], [(1, 1)])
        await dead_letters.close()

    run_virtual(work())


def test_reconsuming_has_to_be_enabled() -> None:
    async def work() -> None:
        dead_letters = letters_of(Source(), Topics(), ConsumerDeadLetterPolicy(1))
        with pytest.raises(OperationNotSupportedError, match="retry_enable"):
            await dead_letters.reconsume_later(message(1), 0)

    run_virtual(work())


def test_copies_keep_keys_and_event_time() -> None:
    policy = ConsumerDeadLetterPolicy(1).with_names(TOPIC, "sub")
    assert policy.dead_letter_topic == DLQ

    def options(**fields: Any) -> dict[str, Any]:
        return copy_options(message(1, **fields), plan_reconsume(policy, {}))

    plain = options()
    assert set(plain) == {"properties"}
    assert options(partition_key="k")["partition_key"] == "k"
    assert options(partition_key="a2V5", partition_key_b64_encoded=True)["partition_key"] == b"key"
    assert options(ordering_key=b"o")["ordering_key"] == b"o"
    assert options(event_time=5)["event_timestamp"] == 5
