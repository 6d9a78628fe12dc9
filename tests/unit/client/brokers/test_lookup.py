"""Lookups over the binary protocol."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.brokers.service_url import BrokerAddress
from pulsar_py.client.shared.enums import RegexSubscriptionMode
from pulsar_py.common.errors import (
    ClientTimeoutError,
    LookupFailedError,
    ServiceNotReadyError,
    TopicNotFoundError,
)
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, Schema, ServerError
from pulsar_py.wire import commands
from tests.scripted_broker import ScriptedBroker, lookup_answer, simulated, simulated_client

TOPIC = "persistent://a/b/c"


@simulated
async def test_the_owner_is_named(broker: ScriptedBroker) -> None:
    async with simulated_client(broker, listener_name="inside") as client:
        address = await client.context.lookup.lookup(TOPIC)
        (asked,) = broker.of(BaseCommand.LOOKUP)

    assert address == BrokerAddress(broker.address, broker.address)
    assert not address.is_proxied
    assert asked.lookupTopic.topic == TOPIC
    assert asked.lookupTopic.advertised_listener_name == "inside"
    assert not asked.lookupTopic.authoritative


@simulated
async def test_redirects_are_followed_with_their_authority(broker: ScriptedBroker) -> None:
    other = await ScriptedBroker(host="other").start()
    broker.script[BaseCommand.LOOKUP] = lambda end, command: lookup_answer(
        command, other.address, is_redirect=True, is_authoritative=True
    )
    async with simulated_client(broker) as client:
        address = await client.context.lookup.lookup(TOPIC)
        (asked,) = other.of(BaseCommand.LOOKUP)

    assert address.logical == other.address
    assert asked.lookupTopic.authoritative
    other.close()


@simulated
async def test_redirects_without_end_are_an_error(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.LOOKUP] = lambda end, command: lookup_answer(
        command, broker.address, is_redirect=True
    )
    async with simulated_client(broker, max_lookup_redirects=3) as client:
        with pytest.raises(LookupFailedError, match=f"{TOPIC}: more than 3 redirects"):
            await client.context.lookup.lookup(TOPIC)
    assert len(broker.of(BaseCommand.LOOKUP)) == 4


@simulated
async def test_behind_a_proxy_the_service_url_is_where_tcp_goes(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.LOOKUP] = lambda end, command: lookup_answer(
        command, "hidden:6650", is_proxy_through_service_url=True
    )
    async with simulated_client(broker) as client:
        address = await client.context.lookup.lookup(TOPIC)
        await client.context.pool.get(address)
        connects = broker.of(BaseCommand.CONNECT)

    assert address == BrokerAddress("hidden:6650", broker.address)
    assert [each.connect.proxy_to_broker_url for each in connects] == ["", "hidden:6650"]


@pytest.mark.parametrize("url", ["", "nonsense", "pulsar://:1"])
def test_an_answer_without_an_address_is_an_error(url: str) -> None:
    @simulated
    async def test(broker: ScriptedBroker) -> None:
        broker.script[BaseCommand.LOOKUP] = lambda end, command: commands.lookup_response(
            command.lookupTopic.request_id,
            broker_service_url=url or None,
            broker_service_url_tls=None,
            is_redirect=False,
            is_authoritative=True,
            is_proxy_through_service_url=False,
        )
        async with simulated_client(broker) as client:
            with pytest.raises(
                LookupFailedError, match=rf"{TOPIC}: the broker('s answer has no| answered the) URL"
            ):
                await client.context.lookup.lookup(TOPIC)

    test()


@simulated
async def test_equal_questions_at_a_time_are_asked_once(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        lookup = client.context.lookup
        await asyncio.gather(*(lookup.lookup(TOPIC) for _ in range(5)))
        await asyncio.gather(*(lookup.partitions_count(TOPIC) for _ in range(5)))

    assert len(broker.of(BaseCommand.LOOKUP)) == 1
    assert len(broker.of(BaseCommand.PARTITIONED_METADATA)) == 1


@simulated
async def test_only_so_many_are_under_way(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.LOOKUP] = lambda end, command: None
    async with simulated_client(
        broker, concurrent_lookup_requests=2, operation_timeout_seconds=5
    ) as client:
        lookups = [client.context.lookup.lookup(f"{TOPIC}{i}") for i in range(4)]
        waiting = asyncio.gather(*lookups, return_exceptions=True)
        await asyncio.sleep(1)
        assert len(broker.of(BaseCommand.LOOKUP)) == 2
        assert [type(each) for each in await waiting] == [ClientTimeoutError] * 4


@simulated
async def test_a_refused_lookup_is_one_attempt(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.LOOKUP] = lambda end, command: commands.lookup_failed(
        command.lookupTopic.request_id, ServerError.ServiceNotReady, "not yet"
    )
    async with simulated_client(broker) as client:
        with pytest.raises(ServiceNotReadyError, match=f"{TOPIC}: not yet"):
            await client.context.lookup.lookup(TOPIC)


@simulated
async def test_a_host_that_is_not_ready_gives_way_to_the_next(broker: ScriptedBroker) -> None:
    other = await ScriptedBroker(host="other").start()
    for each in (broker, other):
        each.script[BaseCommand.PARTITIONED_METADATA] = lambda end, command: (
            commands.partitioned_metadata_failed(
                command.partitionMetadata.request_id, ServerError.ServiceNotReady, "x"
            )
        )
    url = f"{broker.service_url},{other.address}"
    async with simulated_client(url, operation_timeout_seconds=2) as client:
        with pytest.raises(ServiceNotReadyError):
            await client.context.lookup.partitions_count(TOPIC)

    assert broker.of(BaseCommand.PARTITIONED_METADATA)
    assert other.of(BaseCommand.PARTITIONED_METADATA)
    other.close()


@simulated
async def test_partitions_are_asked_for_until_there_is_an_answer(broker: ScriptedBroker) -> None:
    polite = broker.script[BaseCommand.PARTITIONED_METADATA]

    def refuse_once(end, command):
        broker.script[BaseCommand.PARTITIONED_METADATA] = polite
        return commands.partitioned_metadata_failed(
            command.partitionMetadata.request_id, ServerError.TooManyRequests, "x"
        )

    broker.script[BaseCommand.PARTITIONED_METADATA] = refuse_once
    async with simulated_client(broker) as client:
        assert await client.context.partitions_count(TOPIC, may_create=False) == 0
    first, _ = broker.of(BaseCommand.PARTITIONED_METADATA)
    assert not first.partitionMetadata.metadata_auto_creation_enabled


@simulated
async def test_a_count_that_cannot_be_is_not_believed(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.PARTITIONED_METADATA] = lambda end, command: (
        commands.partitioned_metadata_response(command.partitionMetadata.request_id, 4_000_000_000)
    )
    async with simulated_client(broker) as client:
        with pytest.raises(LookupFailedError, match=f"{TOPIC}: .* 4000000000 partitions"):
            await client.context.partitions_count(TOPIC)


@simulated
async def test_a_topic_that_does_not_exist_is_an_error_at_once(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.PARTITIONED_METADATA] = lambda end, command: (
        commands.partitioned_metadata_failed(
            command.partitionMetadata.request_id, ServerError.TopicNotFound, "no"
        )
    )
    async with simulated_client(broker) as client:
        with pytest.raises(TopicNotFoundError, match=TOPIC):
            await client.context.partitions_count(TOPIC)


@simulated
async def test_topics_of_a_namespace_are_listed(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.GET_TOPICS_OF_NAMESPACE] = lambda end, command: (
        commands.get_topics_of_namespace_response(
            command.getTopicsOfNamespace.request_id,
            [TOPIC],
            is_filtered=True,
            topics_hash="cafe",
            is_changed=True,
        )
    )
    async with simulated_client(broker) as client:
        found = await client.context.lookup.topics_of_namespace(
            "a/b", RegexSubscriptionMode.AllTopics, pattern="c.*", topics_hash="00"
        )
    (asked,) = broker.of(BaseCommand.GET_TOPICS_OF_NAMESPACE)

    assert (found.topics, found.is_filtered, found.topics_hash) == ((TOPIC,), True, "cafe")
    assert asked.getTopicsOfNamespace.topics_pattern == "c.*"
    assert asked.getTopicsOfNamespace.topics_hash == "00"
    assert asked.getTopicsOfNamespace.Mode.Name(asked.getTopicsOfNamespace.mode) == "ALL"


@simulated
async def test_schemas_are_fetched_by_version_and_registered(broker: ScriptedBroker) -> None:
    schema = Schema(name="s", schema_data=b"{}", type=Schema.Avro)
    broker.script[BaseCommand.GET_SCHEMA] = lambda end, command: (
        commands.get_schema_response(command.getSchema.request_id, schema, b"\0\1")
        if command.getSchema.schema_version
        else commands.get_schema_failed(
            command.getSchema.request_id, ServerError.TopicNotFound, "none"
        )
    )
    broker.script[BaseCommand.GET_OR_CREATE_SCHEMA] = lambda end, command: (
        commands.get_or_create_schema_response(command.getOrCreateSchema.request_id, b"\0\2")
    )
    async with simulated_client(broker) as client:
        lookup = client.context.lookup
        found = await lookup.schema(TOPIC, b"\0\1")
        assert found is not None
        assert (found.schema.name, found.version) == ("s", b"\0\1")
        assert await lookup.schema(TOPIC) is None
        assert await lookup.get_or_create_schema(TOPIC, schema) == b"\0\2"
