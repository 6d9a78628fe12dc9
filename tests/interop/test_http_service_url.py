"""Official clients with an `http://` service URL: they look everything up over REST."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pulsar
import pytest
from pulsar import InitialPosition
from pulsar.schema import AvroSchema

from pulsar_py.testing import BrokerThread
from tests.cluster.java_programs import BROKER_POM, NotInstalledError, classpath
from tests.interop.conftest import Address, new_client
from tests.interop.test_produce_consume import TIMEOUT, receive_all
from tests.interop.test_schemas import Example, LaterExample
from tests.unit.test_web import GUARDED, token

JAVA: Final = Path(__file__).with_name("apache") / "HttpLookups.java"


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


def found_by_java(*arguments: str) -> list[str]:
    """What the Java client of Apache Pulsar 4.2.4 found: the lines of `HttpLookups`."""
    try:
        jars = classpath(BROKER_POM)
    except NotInstalledError as error:
        pytest.skip(str(error))
    command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", jars]
    done = subprocess.run(
        [*command, str(JAVA), *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-3000:]
    words = re.compile(
        r"(typed|generic|bytes|pair|partitions|pattern|named|table|read|nowhere|closed)\b"
    )
    return [line for line in done.stdout.splitlines() if words.match(line)]


FOUND: Final = [
    "typed first 1 null",
    "typed later 2 new",
    "generic AVRO [name=first, number=1]",
    "generic AVRO [added=new, name=later, number=2]",
    "bytes refused",
    "bytes true",
    "pair key paired",
    "partitions 3",
    "pattern 012345678",
    "named true sent",
    "named true sent",
    "table 4 3",
    "read 5",
    "nowhere NotFoundException",
    "closed",
]


@pytest.mark.slow
def test_the_java_client_finds_topics_and_schemas(address: Address, topic: str) -> None:
    address.rest("PUT", "/admin/v2/" + topic.replace("://", "/") + "-parts/partitions", b"3")
    assert found_by_java(address.web_service_url, topic) == FOUND


@pytest.mark.slow
def test_the_java_client_shows_its_token_over_http() -> None:
    topic = "persistent://public/default/guarded"
    with BrokerThread(config=GUARDED) as broker:
        guarded = Address(broker.service_url, broker.web_service_url)
        request = {"Authorization": f"Bearer {token('admin')}"}
        path = "/admin/v2/persistent/public/default/guarded-parts/partitions"
        guarded.rest("PUT", path, b"3", request)
        assert found_by_java(broker.web_service_url, topic, token("admin")) == FOUND
