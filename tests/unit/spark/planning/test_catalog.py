"""The catalog finds topics, partitions and positions of a broker in memory."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.request import Request, urlopen

import jwt
import pytest

from pulsar_py import Broker
from pulsar_py.client import AuthenticationToken, Client, InitialPosition
from pulsar_py.common.errors import AuthorizationError, TopicNotFoundError
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.spark.planning.catalog import TopicCatalog
from pulsar_py.spark.shared.offsets import Edge, UserOffsets
from pulsar_py.spark.shared.options import ReadOptions

TOPIC = "persistent://public/default/catalog"
KEY = secrets.token_bytes(32)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker() as broker:
        yield broker


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[Client]:
    async with Client(broker.service_url) as client:
        yield client


async def catalog_of(broker: Broker, client: Client, **options: str) -> TopicCatalog:
    given = {"service.url": broker.service_url} | options
    return TopicCatalog(client, ReadOptions.parse(given, is_streaming=True))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsar_py.spark.planning.catalog.WAIT_FOR_TOPICS_SECONDS", 0.05)


async def publish(client: Client, topic: str, count: int) -> list[Position]:
    async with await client.create_producer(topic) as producer:
        return [(await producer.send(b"x")).position for _ in range(count)]


async def test_partitions_and_patterns_become_full_names(broker: Broker, client: Client) -> None:
    await broker.service.topics.partitioned.create(TopicName.parse(TOPIC + "-p"), 2)
    await publish(client, TOPIC, 1)
    partitions = [f"{TOPIC}-p-partition-{index}" for index in range(2)]
    for option, value in (("topics", f"{TOPIC},{TOPIC}-p"), ("topicspattern", "catalog.*")):
        catalog = await catalog_of(broker, client, **{option: value})
        assert await catalog.partitions() == sorted([TOPIC, *partitions])


async def test_no_topic_is_an_error_that_names_the_pattern(broker: Broker, client: Client) -> None:
    catalog = await catalog_of(broker, client, topicspattern="nothing-.*")
    with pytest.raises(TopicNotFoundError, match="topicsPattern 'nothing-"):
        await catalog.partitions()


async def test_a_read_may_wait_for_topics_that_are_named(broker: Broker, client: Client) -> None:
    options = {"topic": TOPIC, "waitingfornonexistedtopic": "true"}
    catalog = await catalog_of(broker, client, **options)
    assert await catalog.found() == [TOPIC]
    assert not await catalog.exists(TOPIC)

    async def publish_later() -> bool:
        await asyncio.sleep(0.2)
        existed = await catalog.exists(TOPIC)
        await publish(client, TOPIC, 1)
        return existed

    assert await asyncio.gather(catalog.partitions(), publish_later()) == [[TOPIC], False]
    assert await catalog.exists(TOPIC)


async def test_ledgers_come_from_rest(broker: Broker, client: Client) -> None:
    positions = await publish(client, TOPIC, 3)
    catalog = await catalog_of(broker, client, topic=TOPIC, **{"admin.url": broker.web_service_url})
    layout = await catalog.layout(TOPIC)
    await catalog.close()
    assert layout.start == positions[0]
    assert layout.end == Position(positions[2].ledger_id, positions[2].entry_id + 1)
    assert layout.backlog(layout.start, layout.end).entries_count == 3


async def test_without_rest_the_end_is_known_all_the_same(broker: Broker, client: Client) -> None:
    positions = await publish(client, TOPIC, 3)
    layout = await (await catalog_of(broker, client, topic=TOPIC)).layout(TOPIC)
    assert layout.start == EARLIEST
    assert layout.end == Position(positions[2].ledger_id, positions[2].entry_id + 1)


async def test_an_empty_topic_ends_where_it_starts(broker: Broker, client: Client) -> None:
    await publish(client, TOPIC, 0)
    for options, entry_id in (({}, 0), ({"admin.url": broker.web_service_url}, -1)):
        catalog = await catalog_of(broker, client, topic=TOPIC, **options)
        layout = await catalog.layout(TOPIC)
        assert layout.end.entry_id == entry_id
        await catalog.close()


async def test_places_of_users_become_positions(broker: Broker, client: Client) -> None:
    await publish(client, TOPIC, 2)
    catalog = await catalog_of(broker, client, topic=TOPIC)
    layout = await catalog.layout(TOPIC)
    named = UserOffsets.parse(json.dumps({TOPIC: "7:3"}), "endingOffsets").places[TOPIC]
    assert await catalog.position_of(layout, Edge.EARLIEST, is_end=False) == layout.start
    assert await catalog.position_of(layout, Edge.LATEST, is_end=True) == layout.end
    assert await catalog.position_of(layout, named, is_end=False) == Position(7, 3)
    assert await catalog.position_of(layout, named, is_end=True) == Position(7, 4)


async def test_a_publish_time_is_the_first_entry_of_that_time(
    broker: Broker, client: Client
) -> None:
    await publish(client, TOPIC, 2)
    async with await client.subscribe(
        TOPIC, "s", initial_position=InitialPosition.Earliest
    ) as consumer:
        messages = [await consumer.receive() for _ in range(2)]
    catalog = await catalog_of(broker, client, topic=TOPIC)
    layout = await catalog.layout(TOPIC)
    at = await catalog.position_at(layout, messages[0].publish_timestamp())
    assert at == Position(*messages[0].entry.key)
    future = messages[1].publish_timestamp() + 3_600_000
    assert await catalog.position_at(layout, future) == layout.end


async def test_tasks_that_read_files_need_a_topic_that_may_be_read(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    config = {
        "authenticationEnabled": True,
        "authenticationProviders": "token",
        "tokenSecretKey": str(key),
        "authorizationEnabled": True,
        "superUserRoles": "admin",
        "brokerClientAuthenticationPlugin": "AuthenticationToken",
    }
    as_admin = AuthenticationToken(token("admin"))
    async with Broker(config=config) as broker, Client(broker.service_url, as_admin) as admin:
        await publish(admin, TOPIC, 3)
        for role, action in (("writer", "produce"), ("reader", "consume")):
            await permit(broker, role, action)
        refused = [
            (role, path)
            for role in ("writer", "reader")
            for path in ("", "/run/lent")
            if not await may_plan(broker, role, path)
        ]
    assert refused == [("writer", "/run/lent")]


async def may_plan(broker: Broker, role: str, path: str) -> bool:
    """Whether a role gets the layout of the topic, to be read from files if there is a path."""
    options = {"admin.url": broker.web_service_url, "shortCircuitSocketPath": path}
    async with Client(broker.service_url, AuthenticationToken(token(role))) as client:
        catalog = await catalog_of(broker, client, topic=TOPIC, **options)
        try:
            assert (await catalog.layout(TOPIC)).end.entry_id == 3
        except AuthorizationError:
            return False
        finally:
            await catalog.close()
    return True


def token(role: str) -> str:
    return jwt.encode({"sub": role}, KEY, "HS256")


async def permit(broker: Broker, role: str, action: str) -> None:
    """Give a role a right on the namespace, as an administrator does."""
    request = Request(
        f"{broker.web_service_url}/admin/v2/namespaces/public/default/permissions/{role}",
        method="POST",
        data=json.dumps([action]).encode(),
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {token('admin')}"},
    )

    def send() -> int:
        with urlopen(request) as answer:
            return int(answer.status)

    assert await asyncio.to_thread(send) == 204
