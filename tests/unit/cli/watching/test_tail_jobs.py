"""Following topics of a real broker in this process."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from pulsar_py.admin_client import AdminSettings
from pulsar_py.cli.watching.shown_messages import ShownMessage
from pulsar_py.cli.watching.tail_jobs import TailRequest, parse_message_id, tail
from pulsar_py.client import Client, CryptoKeyReader
from pulsar_py.common.conditions import Condition
from pulsar_py.common.errors import ConfigurationError, TopicNotFoundError
from pulsar_py.common.names import TopicName
from pulsar_py.schema import JsonSchema
from pulsar_py.standalone import Broker

TOPIC = "persistent://public/default/t"


class Tailing:
    """A broker, a client of it, and what `tail` showed."""

    def __init__(self, broker: Broker, client: Client) -> None:
        self.broker = broker
        self.client = client
        self.shown: list[ShownMessage] = []
        self.complaints: list[str] = []
        self._came = asyncio.Event()

    async def tail(self, *topics: str, **options: Any) -> list[Any]:  # Any: fields of TailRequest
        """The values, after it has ended."""
        request = TailRequest(topics=topics or (TOPIC,), **options)
        admin = AdminSettings(url=self.broker.web_service_url)
        await tail(request, self.client, admin, show=self._show, complain=self.complaints.append)
        return [each.value for each in self.shown]

    def _show(self, found: ShownMessage) -> None:
        self.shown.append(found)
        self._came.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, looking whenever a message was shown."""
        async with asyncio.timeout(20):
            while not holds():
                self._came.clear()
                await self._came.wait()

    async def send(self, *values: bytes, topic: str = TOPIC, **options: Any) -> None:
        """Publish one by one."""
        producer = await self.client.create_producer(topic, batching_enabled=False)
        for value in values:
            await producer.send(value, **options)
        await producer.close()

    async def subscriptions(self, topic: str = TOPIC) -> list[str]:
        """The topic's subscriptions."""
        found = await self.broker.service.topics.get_or_load(
            TopicName.parse(topic), create_if_missing=False
        )
        return list(found.subscriptions)


def key_pair(directory: Path) -> tuple[Path, Path]:
    """Files of a new public and private key."""
    key = ec.generate_private_key(ec.SECP256R1())
    public, private = directory / "public.pem", directory / "private.pem"
    public.write_bytes(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return public, private


@pytest.fixture
async def tailing() -> AsyncIterator[Tailing]:
    async with Broker(web_port=0) as broker, Client(broker.service_url) as client:
        yield Tailing(broker, client)


async def test_the_last_ones_are_shown_and_then_what_comes(tailing: Tailing) -> None:
    await tailing.send(b"1", b"2", b"3")
    task = asyncio.get_running_loop().create_task(tailing.tail(last_count=2, limit=4))
    await tailing.until(lambda: len(tailing.shown) == 2)
    await tailing.send(b"4", b"5")
    assert await task == ["2", "3", "4", "5"]
    assert await tailing.subscriptions() == []


async def test_more_than_there_is_begins_at_the_first(tailing: Tailing) -> None:
    await tailing.send(b"1", b"2")
    assert await tailing.tail(last_count=9, follows=False) == ["1", "2"]
    await tailing.send(topic="empty")
    assert await tailing.tail("empty", last_count=3, follows=False) == ["1", "2"]  # nothing more


async def test_it_begins_at_a_time_or_with_a_message(tailing: Tailing) -> None:
    await tailing.send(b"old")
    middle = tailing.broker.service.clock.wall_time_millis() + 2
    await asyncio.sleep(0.01)
    await tailing.send(b"new", b"newer")
    assert await tailing.tail(since_millis=middle, follows=False) == ["new", "newer"]
    start = parse_message_id(tailing.shown[1].fields["messageId"])
    tailing.shown.clear()
    assert await tailing.tail(start=start, follows=False) == ["newer"]


async def test_partitions_and_patterns_are_followed(tailing: Tailing) -> None:
    await tailing.broker.service.topics.partitioned.create(TopicName.parse("orders-p"), 2)
    await tailing.send(b"a", b"b", b"c", topic="orders-p")
    assert sorted(await tailing.tail("orders-p", last_count=10, follows=False)) == ["a", "b", "c"]
    tailing.shown.clear()
    await tailing.send(b"x", topic="orders-x")
    found = await tailing.tail(
        pattern=re.compile("public/default/orders-.*"), since_millis=0, follows=False
    )
    assert sorted(found) == ["a", "b", "c", "x"]


async def test_bytes_without_a_schema_are_chosen_by_the_json_that_they_are(
    tailing: Tailing,
) -> None:
    await tailing.send(b'{"n": 1}', b'{"n": 2}', b"no json", b"7")
    large = [Condition.parse("n>1")]
    found = await tailing.tail(last_count=9, follows=False, conditions=large)
    assert found == ['{"n": 2}']


async def test_values_are_decoded_and_chosen_by_their_fields(tailing: Tailing) -> None:
    definition = b'{"type":"record","name":"R","fields":[{"name":"n","type":"int"}]}'
    schema = JsonSchema(schema_definition=definition, records_as=dict)
    producer = await tailing.client.create_producer(TOPIC, schema=schema)
    for number in range(4):
        await producer.send({"n": number}, partition_key=str(number % 2), properties={"p": "q"})
    await producer.close()
    raw = await tailing.client.create_producer(TOPIC)
    await raw.send(b"no schema")
    await raw.close()
    large = [Condition.parse("n>1")]
    assert await tailing.tail(last_count=9, follows=False, conditions=large) == [{"n": 2}, {"n": 3}]
    tailing.shown.clear()
    found = await tailing.tail(last_count=9, follows=False, keys=frozenset({"1"}))
    assert found == [{"n": 1}, {"n": 3}]
    tailing.shown.clear()
    assert await tailing.tail(last_count=9, follows=False, properties=[("p", "other")]) == []
    assert len(await tailing.tail(last_count=9, follows=False, properties=[("p", None)])) == 4


async def test_what_cannot_be_decoded_or_decrypted_is_shown_all_the_same(
    tailing: Tailing, tmp_path: Path
) -> None:
    public, private = key_pair(tmp_path)
    producer = await tailing.client.create_producer(
        TOPIC, encryption_key="k", crypto_key_reader=CryptoKeyReader(public_key_path=str(public))
    )
    await producer.send(b"secret")
    await producer.close()
    await tailing.send(b"plain")
    await tailing.tail(last_count=5, follows=False)
    assert [each.error for each in tailing.shown] == ["encrypted with the keys k", None]
    tailing.shown.clear()
    found = await tailing.tail(last_count=5, follows=False, key_file=str(private))
    assert found == ["secret", "plain"]


async def test_it_goes_on_when_the_topic_moves(tailing: Tailing) -> None:
    await tailing.send(b"1")
    task = asyncio.get_running_loop().create_task(tailing.tail(last_count=1, limit=3))
    await tailing.until(lambda: len(tailing.shown) == 1)
    await tailing.broker.service.topics.unload(TopicName.parse(TOPIC))
    await tailing.send(b"2", b"3")
    assert await task == ["1", "2", "3"]


async def test_a_topic_that_is_not_there_is_not_made(tailing: Tailing) -> None:
    with pytest.raises(TopicNotFoundError):
        await tailing.tail("none", last_count=1)
    assert tailing.broker.service.topics.loaded(TopicName.parse("none")) is None


@pytest.mark.parametrize("text", ["", "1", "1:", "a:b", "1:2:3:4:5", "-1:0", "1:2:x"])
def test_what_is_no_message_id_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--from"):
        parse_message_id(text)


def test_message_ids_are_read_in_each_form() -> None:
    assert str(parse_message_id("1:2")) == "1:2:-1"
    assert str(parse_message_id("1:2:3")) == "1:2:3"
    assert str(parse_message_id("1:2:-1:5")) == "1:2:-1:5"
