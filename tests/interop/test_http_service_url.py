"""The official client with an `http://` service URL: it looks everything up over REST."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pulsar
import pytest
from pulsar import InitialPosition
from pulsar.schema import AvroSchema

from tests.interop.conftest import Address, new_client
from tests.interop.test_produce_consume import TIMEOUT, receive_all
from tests.interop.test_schemas import Example, LaterExample


@pytest.fixture
def http_client(address: Address) -> Iterator[pulsar.Client]:
    client = new_client(address.web_service_url)
    yield client
    client.close()


def test_each_message_is_decoded_by_the_version_it_was_written_with(
    http_client: pulsar.Client, topic: str
) -> None:
    """A writer's schema comes from `…/schema/{version}`: without it the first can't be read."""
    first = http_client.create_producer(topic, schema=AvroSchema(Example))
    first.send(Example(name="first", number=1))
    first.close()
    later = http_client.create_producer(topic, schema=AvroSchema(LaterExample))
    later.send(LaterExample(name="later", number=2, added="new"))
    consumer = http_client.subscribe(
        topic, "s", schema=AvroSchema(LaterExample), initial_position=InitialPosition.Earliest
    )
    found = [each.value() for each in receive_all(consumer, 2)]
    assert [(each.name, each.number) for each in found] == [("first", 1), ("later", 2)]
    assert found[1].added == "new"


def test_partitions_and_patterns_are_found(
    http_client: pulsar.Client, partitioned_topic: Callable[[int], str]
) -> None:
    topic = partitioned_topic(3)
    assert len(http_client.get_topic_partitions(topic)) == 3
    consumer = http_client.subscribe(re.compile(topic + ".*"), "s")
    producer = http_client.create_producer(topic)
    for number in range(9):
        producer.send(b"%d" % number)
    received = [consumer.receive(TIMEOUT).data() for _ in range(9)]
    assert sorted(received) == [b"%d" % number for number in range(9)]


def test_a_topic_that_may_not_be_made_is_told(http_client: pulsar.Client) -> None:
    with pytest.raises(pulsar.PulsarException):
        http_client.create_producer("persistent://public/nowhere/t")
