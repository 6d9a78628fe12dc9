"""The public face: names and arguments of the official client."""

from __future__ import annotations

import inspect

import pulsar
import pytest

from pulsar_py.client.producing.producer import Producer
from pulsar_py.common.errors import (
    InvalidConfigurationError,
)
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from tests.producer_parts import TOPIC, confirming, sent
from tests.scripted_broker import ScriptedBroker, simulated, simulated_client


def test_send_takes_what_the_official_clients_does_in_its_order() -> None:
    theirs = inspect.signature(pulsar.Producer.send).parameters
    for ours in (Producer.send, Producer.send_nowait):
        parameters = inspect.signature(ours).parameters
        assert list(parameters)[: len(theirs)] == list(theirs)
        for name, parameter in theirs.items():
            assert parameters[name].default == parameter.default


def test_it_has_the_official_clients_methods() -> None:
    for name in ("topic", "producer_name", "last_sequence_id", "flush", "close", "is_connected"):
        assert callable(getattr(Producer, name))


@simulated
async def test_all_that_send_takes_arrives(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client, await client.create_producer(TOPIC) as producer:
        await producer.send(
            b"x", {"a": "1"}, "k", "o", 77, ["c1"], False, 1_700_000_000_000, 1_893_456_000_000
        )
    metadata = sent(broker)[0].entry.metadata
    assert metadata.sequence_id == 77
    assert [(each.key, each.value) for each in metadata.properties] == [("a", "1")]
    assert (metadata.partition_key, metadata.ordering_key) == ("k", b"o")
    assert list(metadata.replicate_to) == ["c1"]
    assert metadata.event_time == 1_700_000_000_000
    assert metadata.deliver_at_time == 1_893_456_000_000


@simulated
async def test_key_is_short_for_partition_key(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client, await client.create_producer(TOPIC) as producer:
        await producer.send(b"x", key="k")
        await producer.send_nowait(b"x", partition_key="k", key="k")
        with pytest.raises(InvalidConfigurationError, match="give only one of them"):
            await producer.send(b"x", partition_key="a", key="b")
    assert [each.entry.metadata.partition_key for each in sent(broker)] == ["k", "k"]
