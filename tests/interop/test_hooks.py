"""Entry filters and interceptors, seen by the official client."""

from __future__ import annotations

from collections.abc import Iterator

import pulsar
import pytest

from pulsar_py.testing import BrokerThread
from tests.hook_classes import Recording

HOOKS = {
    "entryFilterNames": "tests.hook_classes.OddPasses",
    "brokerInterceptors": "tests.hook_classes.Recording,tests.hook_classes.Failing",
    "brokerEntryMetadataInterceptors": "AppendIndexMetadataInterceptor",
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with BrokerThread(config=HOOKS) as broker:
        yield broker.service_url


@pytest.mark.parametrize("kind", [pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Shared])
def test_a_filter_chooses_what_a_consumer_gets(url: str, kind: pulsar.ConsumerType) -> None:
    client = pulsar.Client(url)
    topic = f"filtered-{kind.name}"
    consumer = client.subscribe(topic, "s", consumer_type=kind)
    producer = client.create_producer(topic)
    for number in range(6):
        producer.send(b"%d" % number, properties={"n": str(number)})
    got = []
    for _ in range(3):
        message = consumer.receive(30_000)
        got.append(message.data())
        consumer.acknowledge(message)
    assert got == [b"1", b"3", b"5"]
    with pytest.raises(pulsar.Timeout):
        consumer.receive(100)
    client.close()
    produced = Recording.instances[-1].named("message_produced")
    assert sum(topic in each[0].topic for each in produced) == 6
    commands = {each[0] for each in Recording.instances[-1].named("on_pulsar_command")}
    assert {"CONNECT", "SUBSCRIBE", "PRODUCER", "FLOW", "ACK"} <= commands
