"""Statistics as REST spells them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from pulsar_py.admin.http_messages import json_response
from pulsar_py.admin.resources.topic_stats_json import (
    consumer_json,
    iso_time,
    non_persistent_internal_stats_json,
    publisher_json,
    subscription_json,
    topic_stats_json,
)
from pulsar_py.common.loops.work import Turns
from pulsar_py.proto.PulsarApi_pb2 import ProducerAccessMode
from pulsar_py.server.publishing.producer_stats import ProducerStats
from pulsar_py.server.subscriptions.subscription_stats import ConsumerStats, SubscriptionStats
from pulsar_py.server.topics.stats import TopicStats


def made(kind: Any, **values: Any) -> Any:
    """A `Struct`, with zeros of the right type for what is neither named nor has a default."""
    zeros = {"int": 0, "float": 0.0, "bool": False, "str": "", "tuple": (), "Mapping": {}}
    names = kind.__struct_fields__
    for name in names[: len(names) - len(kind.__struct_defaults__)]:
        word = str(kind.__annotations__[name]).split("[")[0].split(" ")[0].split(".")[0]
        values.setdefault(name, zeros.get(word))
    return kind(**values)


CONSUMER = made(ConsumerStats, consumer_name="c", key_hash_ranges=((0, 9),), messages_out_count=3)
SUBSCRIPTION = made(
    SubscriptionStats,
    subscription_type="Shared",
    backlog_entries=4,
    backlog_bytes=40,
    is_durable=True,
    consumers=(CONSUMER,),
)
PRODUCER = made(ProducerStats, producer_name="p", access_mode=ProducerAccessMode.Exclusive)
TOPIC = made(
    TopicStats, messages_in_count=7, producers=(PRODUCER,), subscriptions={"s": SUBSCRIPTION}
)


def test_times_are_iso_in_utc() -> None:
    assert iso_time(1_738_318_530_123) == "2025-01-31T10:15:30.123Z"
    assert iso_time(0) == "1970-01-01T00:00:00.000Z"


async def test_a_topic_shows_publishers_and_subscriptions() -> None:
    stats = await topic_stats_json(TOPIC, Turns(), is_persistent=True, owner_broker="b:1")
    assert stats["msgInCounter"] == 7
    assert stats["ownerBroker"] == "b:1"
    assert stats["publishers"][0]["accessMode"] == "Exclusive"
    assert stats["subscriptions"]["s"]["msgBacklog"] == 4
    assert b"msgDropRate" in json_response(stats["subscriptions"]).body
    assert stats["msgDropRate"] is None


async def test_parts_can_be_left_out() -> None:
    stats = await topic_stats_json(
        TOPIC,
        Turns(),
        is_persistent=True,
        owner_broker="b:1",
        with_publishers=False,
        with_consumers=False,
        with_backlog_size=False,
    )
    assert stats["publishers"] == []
    assert stats["subscriptions"]["s"]["consumers"] == []
    assert stats["subscriptions"]["s"]["backlogSize"] == -1


def test_rates_are_fractions_even_when_they_are_zero() -> None:
    assert isinstance(publisher_json(PRODUCER, is_persistent=True)["msgRateIn"], float)


def test_a_subscription_nobody_used_has_no_type() -> None:
    unused = made(SubscriptionStats, is_durable=True)
    shown = subscription_json(unused, [], is_persistent=True)
    assert shown["type"] == "None"
    assert shown["durable"] is True
    assert subscription_json(unused, [], is_persistent=False)["durable"] is False


def test_hash_ranges_come_as_text_and_as_pairs() -> None:
    shown = consumer_json(CONSUMER)
    assert shown["keyHashRanges"] == ["[0, 9]"]
    assert shown["keyHashRangeArrays"] == [[0, 9]]
    assert consumer_json(made(ConsumerStats))["keyHashRanges"] is None


def test_a_topic_that_stores_nothing_has_empty_internals() -> None:
    stats = non_persistent_internal_stats_json(3, ["s"])
    assert stats["entriesAddedCounter"] == 3
    assert stats["cursors"].keys() == {"s"}
    assert stats["numberOfEntries"] == 0


async def test_the_newest_index_is_shown_where_there_is_one() -> None:
    indexed = replace(TOPIC, last_message_index=7)
    for stats, index in ((TOPIC, None), (indexed, 7)):
        shown = await topic_stats_json(stats, Turns(), is_persistent=True, owner_broker="b:1")
        assert shown.get("lastMessageIndex") == index
