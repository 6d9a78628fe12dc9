"""The client as a whole: its options, its life, its service URL."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.client import Client
from pulsar_py.client.security.authentication import AuthenticationToken
from pulsar_py.common.errors import (
    AlreadyClosedError,
    InvalidConfigurationError,
    InvalidServiceUrlError,
    InvalidTopicNameError,
)
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.wire import commands
from tests.scripted_broker import ScriptedBroker, simulated, simulated_client

TOPIC = "persistent://a/b/c"


def test_an_unknown_option_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidConfigurationError, match="did you mean operation_timeout_seconds"):
        Client("pulsar://a", operation_timeout_second=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidConfigurationError, match="has no option io_threads"):
        Client("pulsar://a", io_threads=3)  # type: ignore[call-arg]


def test_a_wrong_url_or_authentication_is_refused() -> None:
    with pytest.raises(InvalidServiceUrlError):
        Client("localhost:6650")
    with pytest.raises(InvalidConfigurationError, match="authentication"):
        Client("pulsar://a", "token")  # type: ignore[arg-type]


def test_a_client_is_made_without_an_event_loop() -> None:
    client = Client("pulsar://a,b:1", AuthenticationToken("x"), operation_timeout_seconds=3)

    assert client.service_url == "pulsar://a:6650,b:1"
    assert client.context.config.operation_timeout_seconds == 3
    assert not client.is_closed


@simulated
async def test_partitions_are_named_by_the_topics_full_name(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        assert await client.get_topic_partitions("t") == ["persistent://public/default/t"]
        broker.script[BaseCommand.PARTITIONED_METADATA] = lambda end, command: (
            commands.partitioned_metadata_response(command.partitionMetadata.request_id, 2)
        )
        assert await client.get_topic_partitions(TOPIC) == [
            f"{TOPIC}-partition-0",
            f"{TOPIC}-partition-1",
        ]
        asked = len(broker.received)
        assert await client.get_topic_partitions(f"{TOPIC}-partition-5") == [f"{TOPIC}-partition-5"]
        assert len(broker.received) == asked
        with pytest.raises(InvalidTopicNameError):
            await client.get_topic_partitions("://")


@simulated
async def test_a_closed_client_says_so(broker: ScriptedBroker) -> None:
    client = simulated_client(broker)
    await client.get_topic_partitions(TOPIC)
    await client.close()
    await client.close()
    await asyncio.sleep(1)

    assert client.is_closed
    assert not broker.open_ends
    with pytest.raises(AlreadyClosedError):
        await client.get_topic_partitions(TOPIC)
    with pytest.raises(AlreadyClosedError):
        await client.update_service_url("pulsar://b")
    with pytest.raises(AlreadyClosedError):
        async with client:
            pass


class Child:
    def __init__(self, client: Client, *, seconds: float = 0, error: Exception | None = None):
        self.seconds, self.error, self.is_closed = seconds, error, False
        self.is_abandoned = False
        client.context.register_child(self)

    async def close(self) -> None:
        await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        self.is_closed = True

    def abandon(self) -> None:
        self.is_abandoned = True


@simulated
async def test_what_a_client_made_is_closed_with_it_at_the_same_time(
    broker: ScriptedBroker,
) -> None:
    client = simulated_client(broker)
    children = [Child(client, seconds=2), Child(client, error=ValueError("x")), Child(client)]
    gone = Child(client)
    client.context.unregister_child(gone)

    await client.close()

    assert [child.is_closed for child in children] == [True, False, True]
    assert not gone.is_closed
    assert asyncio.get_running_loop().time() == 2


@simulated
async def test_closing_ends_in_time_whatever_its_children_do(broker: ScriptedBroker) -> None:
    client = simulated_client(broker, operation_timeout_seconds=4)
    Child(client, seconds=10_000)

    closing = [asyncio.get_running_loop().create_task(client.close()) for _ in range(2)]
    await asyncio.wait(closing)

    assert asyncio.get_running_loop().time() == 4
    assert client.is_closed


@simulated
async def test_a_cancelled_close_drops_everything(broker: ScriptedBroker) -> None:
    client = simulated_client(broker)
    await client.get_topic_partitions(TOPIC)
    Child(client, seconds=10_000)
    closing = asyncio.get_running_loop().create_task(client.close())
    await asyncio.sleep(1)

    closing.cancel()
    await asyncio.wait([closing])
    await asyncio.sleep(1)

    assert client.is_closed
    assert not broker.open_ends


@simulated
async def test_another_service_url_is_used_from_then_on(broker: ScriptedBroker) -> None:
    other = await ScriptedBroker(host="other").start()
    async with simulated_client(broker) as client:
        await client.get_topic_partitions(TOPIC)
        with pytest.raises(InvalidServiceUrlError):
            await client.update_service_url("nonsense")
        await client.update_service_url(
            other.service_url,
            authentication=AuthenticationToken("new"),
            tls_trust_certs_file_path="ca.pem",
        )
        await client.get_topic_partitions(TOPIC)
        await asyncio.sleep(1)

        assert client.service_url == other.service_url
        assert not broker.open_ends
        (connect,) = other.of(BaseCommand.CONNECT)
        assert connect.connect.auth_data == b"new"
        assert client.context.config.tls_trust_certs_file_path == "ca.pem"
    other.close()


class Provider:
    """Switches after ten seconds."""

    def __init__(self, first: str, second: str) -> None:
        self.urls = first, second
        self.is_closed = False

    def initial_service_url(self) -> str:
        return self.urls[0]

    async def start(self, client, context) -> None:
        assert client.service_url == self.urls[0]

        async def switch() -> None:
            await context.clock.sleep(10)
            await client.update_service_url(self.urls[1])

        context.tasks.spawn(switch(), "switch")

    async def close(self) -> None:
        self.is_closed = True


@simulated
async def test_a_provider_chooses_the_cluster_at_run_time(broker: ScriptedBroker) -> None:
    other = await ScriptedBroker(host="other").start()
    provider = Provider(broker.service_url, other.service_url)
    async with simulated_client(provider) as client:
        await client.get_topic_partitions(TOPIC)
        await asyncio.sleep(11)
        await client.get_topic_partitions(TOPIC)
        assert client.service_url == other.service_url
        assert len(other.of(BaseCommand.PARTITIONED_METADATA)) == 1
    assert provider.is_closed
    other.close()


@simulated
async def test_a_client_shut_down_drops_its_connections(broker: ScriptedBroker) -> None:
    client = simulated_client(broker)
    await client.get_topic_partitions(TOPIC)

    client.shutdown()
    await asyncio.sleep(1)

    assert client.is_closed
    assert not broker.open_ends
    with pytest.raises(AlreadyClosedError):
        await client.get_topic_partitions(TOPIC)


@simulated
async def test_nothing_runs_after_close(broker: ScriptedBroker) -> None:
    before = asyncio.all_tasks()
    client = simulated_client(broker)
    await client.get_topic_partitions(TOPIC)
    await client.close()

    assert asyncio.all_tasks() == before
