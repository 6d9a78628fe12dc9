"""Settings as clients see them: each test changes one, and shows the answer it changes.

Settings whose effect is inside (caches, files, intervals) are shown in virtual time, in
tests/unit/settings. The mark `setting` says which test shows which; tests/setting_mutations.py tries
whether it would notice.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from pulsar_py.cli.standalone import StandaloneOptions, broker_of
from pulsar_py.common.names import TopicName
from pulsar_py.metadata.documents import TopicPolicies
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandConnected,
    CommandGetTopicsOfNamespace,
    CommandSubscribe,
    MessageIdData,
    Schema,
    ServerError,
)
from pulsar_py.server.config import BrokerConfig
from pulsar_py.standalone import Broker
from tests.wire_client import Received, WireClient, encode, stored_entry

TOPIC = "persistent://public/default/t"
SHARED = CommandSubscribe.Shared
DEADLINE_SECONDS = 10


@asynccontextmanager
async def broker_with(**settings: object) -> AsyncIterator[Broker]:
    async with Broker(config=settings) as broker:
        yield broker


@asynccontextmanager
async def client_of(broker: Broker, topic: str = TOPIC) -> AsyncIterator[WireClient]:
    address = urlsplit(broker.service_url)
    assert address.hostname is not None
    assert address.port is not None
    client = await WireClient.connect(address.hostname, address.port)
    try:
        await client.lookup(topic)
        yield client
    finally:
        await client.close()


async def connected(broker: Broker) -> CommandConnected:
    """What the broker says when one connects."""
    address = urlsplit(broker.service_url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    command = BaseCommand(type=BaseCommand.CONNECT)
    command.connect.client_version = "test"
    command.connect.protocol_version = 21
    writer.write(encode(command))
    total = int.from_bytes(await reader.readexactly(4), "big")
    data = await reader.readexactly(total)
    writer.close()
    return BaseCommand.FromString(data[4:]).connected


async def pushed(client: WireClient, kind: int) -> Received:
    """The next command of that kind which nobody asked for."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            received = await client.pushed.get()
            if received.command.type == kind:
                return received


async def publish(client: WireClient, count: int = 1, **metadata: object) -> list[MessageIdData]:
    """Publish with producer 1; where the messages went."""
    receipts: asyncio.Queue[BaseCommand] = asyncio.Queue()
    client.on_receipt = receipts.put_nowait
    for number in range(count):
        command = BaseCommand(type=BaseCommand.SEND)
        command.send.producer_id = 1
        command.send.sequence_id = number
        client.writer.write(encode(command, stored_entry(b"%d" % number, number, **metadata)))
    async with asyncio.timeout(DEADLINE_SECONDS):
        return [(await receipts.get()).send_receipt.message_id for _ in range(count)]


async def http(
    broker: Broker, method: str, path: str, body: object = None, **headers: str
) -> tuple[int, Any]:
    """Status and parsed body of an answer; status 0 if the connection is closed without one."""
    address = urlsplit(broker.web_service_url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    data = b"" if body is None else json.dumps(body).encode()
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        "Connection: close",
        "Content-Type: application/json",
        f"Content-Length: {len(data)}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    try:
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
        async with asyncio.timeout(DEADLINE_SECONDS):
            answer = await reader.read(-1)
    except ConnectionError:
        answer = b""
    finally:
        writer.close()
    head, _, content = answer.partition(b"\r\n\r\n")
    status = int(head.split(b" ")[1]) if head else 0
    try:
        return status, json.loads(content)
    except ValueError:
        return status, content


def error_of(answer: BaseCommand) -> str:
    """The code of an ERROR."""
    assert answer.type == BaseCommand.ERROR, answer
    return ServerError.Name(answer.error.error)


async def consume_some(client: WireClient, permits: int, **kwargs: Any) -> asyncio.Queue[Received]:
    """Subscribe Shared and let messages come."""
    received: asyncio.Queue[Received] = asyncio.Queue()
    client.on_message = received.put_nowait
    await client.subscribe(TOPIC, "s", SHARED, **kwargs)
    client.flow(permits)
    return received


@pytest.mark.setting("clusterName")
async def test_cluster_name() -> None:
    async with broker_with(clusterName="c7") as broker, client_of(broker) as client:
        answer = await client.create_producer(TOPIC)
        assert answer.producer_success.producer_name.startswith("c7-")
        assert await http(broker, "GET", "/admin/v2/clusters") == (200, ["c7"])


@pytest.mark.setting("maxMessageSize")
async def test_max_message_size() -> None:
    async with broker_with(maxMessageSize=1000) as broker:
        assert (await connected(broker)).max_message_size == 1000


@pytest.mark.setting("enableBrokerTopicListWatcher")
async def test_enable_broker_topic_list_watcher() -> None:
    for is_enabled in (True, False):
        async with broker_with(enableBrokerTopicListWatcher=is_enabled) as broker:
            flags = (await connected(broker)).feature_flags
            assert flags.supports_topic_watchers == is_enabled


@pytest.mark.setting("brokerMaxConnections", "brokerMaxConnectionsPerIp")
@pytest.mark.parametrize("name", ["brokerMaxConnections", "brokerMaxConnectionsPerIp"])
async def test_most_connections(name: str) -> None:
    async with broker_with(**{name: 1}) as broker, client_of(broker):
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError, AssertionError)):
            await asyncio.wait_for(connected_or_error(broker), DEADLINE_SECONDS)


async def connected_or_error(broker: Broker) -> None:
    answer = await connected(broker)
    assert answer.server_version, "an ERROR came instead"


@pytest.mark.setting("maxProducersPerTopic", "maxSameAddressProducersPerTopic")
@pytest.mark.parametrize("name", ["maxProducersPerTopic", "maxSameAddressProducersPerTopic"])
async def test_most_producers(name: str) -> None:
    async with broker_with(**{name: 1}) as broker, client_of(broker) as client:
        await client.create_producer(TOPIC)
        assert error_of(await client.create_producer(TOPIC, 2)) == "ProducerBusy"


@pytest.mark.setting(
    "maxConsumersPerTopic", "maxSameAddressConsumersPerTopic", "maxConsumersPerSubscription"
)
@pytest.mark.parametrize(
    "name",
    ["maxConsumersPerTopic", "maxSameAddressConsumersPerTopic", "maxConsumersPerSubscription"],
)
async def test_most_consumers(name: str) -> None:
    async with broker_with(**{name: 1}) as broker, client_of(broker) as client:
        await client.subscribe(TOPIC, "s", SHARED)
        assert error_of(await client.subscribe(TOPIC, "s", SHARED, 2)) == "ConsumerBusy"


@pytest.mark.setting("maxSubscriptionsPerTopic")
async def test_max_subscriptions_per_topic() -> None:
    async with broker_with(maxSubscriptionsPerTopic=1) as broker, client_of(broker) as client:
        await client.subscribe(TOPIC, "s", SHARED)
        assert error_of(await client.subscribe(TOPIC, "other", SHARED, 2)) == "NotAllowedError"


@pytest.mark.setting("allowAutoTopicCreation")
async def test_allow_auto_topic_creation() -> None:
    async with broker_with(allowAutoTopicCreation=False) as broker, client_of(broker) as client:
        assert error_of(await client.create_producer(TOPIC)) == "TopicNotFound"


@pytest.mark.setting("allowAutoTopicCreationType", "defaultNumPartitions")
async def test_allow_auto_topic_creation_type_and_default_num_partitions() -> None:
    async with (
        Broker(config=_partitioned(3)) as broker,
        client_of(broker) as client,
    ):
        command = BaseCommand(type=BaseCommand.PARTITIONED_METADATA)
        command.partitionMetadata.topic = TOPIC
        command.partitionMetadata.request_id = client.next_request_id()
        client.writer.write(encode(command))
        answer = await pushed(client, BaseCommand.PARTITIONED_METADATA_RESPONSE)
        assert answer.command.partitionMetadataResponse.partitions == 3


def _partitioned(count: int) -> Any:
    return BrokerConfig.load(
        overrides=["allowAutoTopicCreationType=partitioned", f"defaultNumPartitions={count}"]
    )


@pytest.mark.setting("allowAutoSubscriptionCreation")
async def test_allow_auto_subscription_creation() -> None:
    settings = {"allowAutoSubscriptionCreation": False}
    async with broker_with(**settings) as broker, client_of(broker) as client:
        await client.create_producer(TOPIC)
        assert error_of(await client.subscribe(TOPIC, "s")) == "SubscriptionNotFound"


@pytest.mark.setting("maxTopicsPerNamespace")
async def test_max_topics_per_namespace() -> None:
    async with broker_with(maxTopicsPerNamespace=1) as broker, client_of(broker) as client:
        await client.create_producer(TOPIC)
        await client.lookup(TOPIC + "2")
        assert error_of(await client.create_producer(TOPIC + "2", 2)) == "NotAllowedError"


@pytest.mark.setting("enablePersistentTopics", "enableNonPersistentTopics")
@pytest.mark.parametrize(
    ("name", "domain"),
    [("enablePersistentTopics", "persistent"), ("enableNonPersistentTopics", "non-persistent")],
)
async def test_kinds_of_topics(name: str, domain: str) -> None:
    topic = f"{domain}://public/default/t"
    async with broker_with(**{name: False}) as broker, client_of(broker, topic) as client:
        assert (await client.create_producer(topic)).type == BaseCommand.ERROR
        other = topic.replace("non-", "") if "non-" in topic else f"non-{topic}"
        await client.lookup(other)
        answer = await client.create_producer(other, 2)
        assert answer.type == BaseCommand.PRODUCER_SUCCESS


@pytest.mark.setting("encryptionRequireOnProducer")
async def test_encryption_require_on_producer() -> None:
    async with broker_with(encryptionRequireOnProducer=True) as broker, client_of(broker) as client:
        assert error_of(await client.create_producer(TOPIC)) == "MetadataError"


@pytest.mark.setting("subscriptionTypesEnabled")
async def test_subscription_types_enabled() -> None:
    settings = {"subscriptionTypesEnabled": frozenset({"Shared"})}
    async with broker_with(**settings) as broker, client_of(broker) as client:
        assert error_of(await client.subscribe(TOPIC, "s")) == "NotAllowedError"
        assert (await client.subscribe(TOPIC, "s", SHARED, 2)).type == BaseCommand.SUCCESS


@pytest.mark.setting("subscriptionKeySharedEnable")
async def test_subscription_key_shared_enable() -> None:
    settings = {"subscriptionKeySharedEnable": False}
    async with broker_with(**settings) as broker, client_of(broker) as client:
        answer = await client.subscribe(TOPIC, "s", CommandSubscribe.Key_Shared)
        assert answer.type == BaseCommand.ERROR


@pytest.mark.setting(
    "enableBrokerSideSubscriptionPatternEvaluation", "subscriptionPatternMaxLength"
)
@pytest.mark.parametrize(
    ("settings", "is_filtered"),
    [
        ({}, True),
        ({"enableBrokerSideSubscriptionPatternEvaluation": False}, False),
        ({"subscriptionPatternMaxLength": 3}, False),
    ],
)
async def test_patterns(settings: dict[str, object], is_filtered: bool) -> None:
    async with broker_with(**settings) as broker, client_of(broker) as client:
        await client.create_producer(TOPIC)
        command = BaseCommand(type=BaseCommand.GET_TOPICS_OF_NAMESPACE)
        command.getTopicsOfNamespace.namespace = "public/default"
        command.getTopicsOfNamespace.mode = CommandGetTopicsOfNamespace.ALL
        command.getTopicsOfNamespace.topics_pattern = "persistent://public/default/t.*"
        command.getTopicsOfNamespace.request_id = client.next_request_id()
        client.writer.write(encode(command))
        answer = await pushed(client, BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE)
        assert answer.command.getTopicsOfNamespaceResponse.filtered == is_filtered


@pytest.mark.setting("maxConsumerMetadataSize")
async def test_max_consumer_metadata_size() -> None:
    async with broker_with(maxConsumerMetadataSize=4) as broker, client_of(broker) as client:
        command = BaseCommand(type=BaseCommand.SUBSCRIBE)
        command.subscribe.topic = TOPIC
        command.subscribe.subscription = "s"
        command.subscribe.subType = SHARED
        command.subscribe.consumer_id = 1
        command.subscribe.metadata.add(key="long", value="value")
        command.subscribe.request_id = client.next_request_id()
        answer = await client.request(command, command.subscribe.request_id)
        assert error_of(answer) == "MetadataError"


@pytest.mark.setting("maxUnackedMessagesPerConsumer", "maxUnackedMessagesPerSubscription")
@pytest.mark.parametrize(
    "name", ["maxUnackedMessagesPerConsumer", "maxUnackedMessagesPerSubscription"]
)
async def test_most_unacknowledged_messages(name: str) -> None:
    async with broker_with(**{name: 2}) as broker, client_of(broker) as client:
        await client.create_producer(TOPIC)
        received = await consume_some(client, 100)
        ids = [(await publish(client))[0] for _ in range(10)]
        first = await asyncio.wait_for(received.get(), DEADLINE_SECONDS)
        # A request behind them is answered after whatever had been sent before.
        await client.lookup(TOPIC)
        held_back = 10 - 1 - received.qsize()
        assert held_back > 0
        for each in ids[1:]:
            acknowledged = first.command.message.message_id
            client.acknowledge([(acknowledged.ledgerId, acknowledged.entryId)])
            first = await asyncio.wait_for(received.get(), DEADLINE_SECONDS)
            assert first.command.message.message_id.entryId == each.entryId


@pytest.mark.setting("subscriptionRedeliveryTrackerEnabled")
@pytest.mark.parametrize("is_counted", [True, False])
async def test_subscription_redelivery_tracker_enabled(is_counted: bool) -> None:
    settings = {"subscriptionRedeliveryTrackerEnabled": is_counted}
    async with broker_with(**settings) as broker, client_of(broker) as client:
        await client.create_producer(TOPIC)
        received = await consume_some(client, 100)
        await publish(client)
        await asyncio.wait_for(received.get(), DEADLINE_SECONDS)
        command = BaseCommand(type=BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
        command.redeliverUnacknowledgedMessages.consumer_id = 1
        client.writer.write(encode(command))
        again = await asyncio.wait_for(received.get(), DEADLINE_SECONDS)
        assert again.command.message.redelivery_count == int(is_counted)


@pytest.mark.setting("brokerDeduplicationEnabled")
@pytest.mark.parametrize("is_enabled", [True, False])
async def test_broker_deduplication_enabled(is_enabled: bool) -> None:
    settings = {"brokerDeduplicationEnabled": is_enabled}
    async with broker_with(**settings) as broker, client_of(broker) as client:
        await client.create_producer(TOPIC)
        await publish(client)
        (again,) = await publish(client)
        is_dropped = again.entryId == 2**64 - 1
        assert is_dropped == is_enabled


@pytest.mark.setting("delayedDeliveryEnabled")
async def test_delayed_delivery_enabled() -> None:
    settings = {"delayedDeliveryEnabled": False}
    async with broker_with(**settings) as broker, client_of(broker) as client:
        await client.create_producer(TOPIC)
        received = await consume_some(client, 10)
        await publish(client, deliver_at_time=2**62)
        await asyncio.wait_for(received.get(), DEADLINE_SECONDS)


@pytest.mark.setting("delayedDeliveryMaxDelayInMillis")
async def test_delayed_delivery_max_delay_in_millis() -> None:
    settings = {"delayedDeliveryMaxDelayInMillis": 1000}
    async with broker_with(**settings) as broker, client_of(broker) as client:
        await client.create_producer(TOPIC)
        command = BaseCommand(type=BaseCommand.SEND)
        command.send.producer_id = 1
        command.send.sequence_id = 0
        late = stored_entry(b"", deliver_at_time=1_700_000_002_000)
        client.writer.write(encode(command, late))
        answer = await pushed(client, BaseCommand.SEND_ERROR)
        assert answer.command.send_error.error == ServerError.NotAllowedError


@pytest.mark.setting(
    "managedLedgerMaxEntriesPerLedger", "managedLedgerMinLedgerRolloverTimeMinutes"
)
@pytest.mark.parametrize(
    ("settings", "ledgers_count"),
    [({}, 1), ({"managedLedgerMaxEntriesPerLedger": 2}, 3)],
)
async def test_managed_ledger_max_entries_per_ledger(
    settings: dict[str, object], ledgers_count: int
) -> None:
    settings = {**settings, "managedLedgerMinLedgerRolloverTimeMinutes": 0}
    async with broker_with(**settings) as broker, client_of(broker) as client:
        await client.create_producer(TOPIC)
        ids = [(await publish(client))[0] for _ in range(6)]
        assert len({each.ledgerId for each in ids}) == ledgers_count


async def test_managed_ledger_min_ledger_rollover_time_minutes() -> None:
    settings = {
        "managedLedgerMaxEntriesPerLedger": 2,
        "managedLedgerMinLedgerRolloverTimeMinutes": 10,
    }
    async with broker_with(**settings) as broker, client_of(broker) as client:
        await client.create_producer(TOPIC)
        ids = [(await publish(client))[0] for _ in range(6)]
        assert len({each.ledgerId for each in ids}) == 1


@pytest.mark.setting("bindAddress", "brokerServicePort", "webServicePort")
async def test_where_the_command_line_listens() -> None:
    config = BrokerConfig(bindAddress="127.0.0.2", brokerServicePort=0, webServicePort=0)
    async with broker_of(StandaloneOptions(data_dir=None), config) as broker:
        service, web = urlsplit(broker.service_url), urlsplit(broker.web_service_url)
        assert (service.hostname, web.hostname) == ("127.0.0.2", "127.0.0.2")
        assert service.port != 6650
        assert web.port != 8080


def _producer_with_schema(client: WireClient, producer_id: int, data: bytes) -> BaseCommand:
    command = BaseCommand(type=BaseCommand.PRODUCER)
    command.producer.topic = TOPIC
    command.producer.producer_id = producer_id
    command.producer.request_id = client.next_request_id()
    command.producer.schema.name = "s"
    command.producer.schema.type = Schema.String
    command.producer.schema.schema_data = data
    return command


@pytest.mark.setting("isAllowAutoUpdateSchemaEnabled")
async def test_is_allow_auto_update_schema_enabled() -> None:
    settings = {"isAllowAutoUpdateSchemaEnabled": False}
    async with broker_with(**settings) as broker, client_of(broker) as client:
        command = _producer_with_schema(client, 1, b"")
        answer = await client.request(command, command.producer.request_id)
        assert error_of(answer) == "IncompatibleSchema"


@pytest.mark.setting("isSchemaValidationEnforced")
async def test_is_schema_validation_enforced() -> None:
    settings = {"isSchemaValidationEnforced": True}
    async with broker_with(**settings) as broker, client_of(broker) as client:
        command = _producer_with_schema(client, 1, b"")
        answer = await client.request(command, command.producer.request_id)
        assert answer.type == BaseCommand.PRODUCER_SUCCESS
        assert error_of(await client.create_producer(TOPIC, 2)) == "IncompatibleSchema"


async def lookup_url(client: WireClient, listener: str = "") -> str:
    command = BaseCommand(type=BaseCommand.LOOKUP)
    command.lookupTopic.topic = TOPIC
    command.lookupTopic.request_id = client.next_request_id()
    if listener:
        command.lookupTopic.advertised_listener_name = listener
    answer = await client.request(command, command.lookupTopic.request_id)
    return answer.lookupTopicResponse.brokerServiceUrl


@pytest.mark.setting("advertisedAddress")
async def test_advertised_address() -> None:
    async with broker_with(advertisedAddress="b.example") as broker:
        assert urlsplit(broker.service_url).hostname == "b.example"


@pytest.mark.setting("advertisedListeners", "internalListenerName")
async def test_advertised_listeners_and_the_internal_one() -> None:
    listeners = "one:pulsar://one.example:1,two:pulsar://two.example:2"
    async with broker_with(advertisedListeners=listeners) as broker, client_of(broker) as client:
        assert await lookup_url(client) == "pulsar://one.example:1"
        assert await lookup_url(client, "two") == "pulsar://two.example:2"
    settings = {"advertisedListeners": listeners, "internalListenerName": "two"}
    async with broker_with(**settings) as broker, client_of(broker) as client:
        assert await lookup_url(client) == "pulsar://two.example:2"


@pytest.mark.setting("defaultNumberOfNamespaceBundles")
async def test_default_number_of_namespace_bundles() -> None:
    async with broker_with(defaultNumberOfNamespaceBundles=2) as broker:
        _, body = await http(broker, "GET", "/admin/v2/namespaces/public/default/bundles")
        assert body["numBundles"] == 2


@pytest.mark.setting("maxTenants")
async def test_max_tenants() -> None:
    async with broker_with(maxTenants=2) as broker:
        info = {"allowedClusters": ["standalone"]}
        assert (await http(broker, "PUT", "/admin/v2/tenants/third", info))[0] == 412


@pytest.mark.setting("maxNamespacesPerTenant")
async def test_max_namespaces_per_tenant() -> None:
    async with broker_with(maxNamespacesPerTenant=1) as broker:
        assert (await http(broker, "PUT", "/admin/v2/namespaces/public/second"))[0] == 412


@pytest.mark.setting("forceDeleteNamespaceAllowed")
async def test_force_delete_namespace_allowed() -> None:
    for is_allowed, status in ((False, 405), (True, 204)):
        async with broker_with(forceDeleteNamespaceAllowed=is_allowed) as broker:
            await http(broker, "PUT", "/admin/v2/namespaces/public/n")
            path = "/admin/v2/namespaces/public/n?force=true"
            assert (await http(broker, "DELETE", path))[0] == status


@pytest.mark.setting("forceDeleteTenantAllowed")
async def test_force_delete_tenant_allowed() -> None:
    for is_allowed, status in ((False, 405), (True, 204)):
        async with broker_with(forceDeleteTenantAllowed=is_allowed) as broker:
            await http(broker, "PUT", "/admin/v2/tenants/t", {"allowedClusters": ["standalone"]})
            assert (await http(broker, "DELETE", "/admin/v2/tenants/t?force=true"))[0] == status


@pytest.mark.setting("maxNumPartitionsPerPartitionedTopic")
async def test_max_num_partitions_per_partitioned_topic() -> None:
    async with broker_with(maxNumPartitionsPerPartitionedTopic=2) as broker:
        path = "/admin/v2/persistent/public/default/p/partitions"
        assert (await http(broker, "PUT", path, 3))[0] in {406, 412}
        assert (await http(broker, "PUT", path, 2))[0] == 204


@pytest.mark.setting("topicLevelPoliciesEnabled", "systemTopicEnabled")
@pytest.mark.parametrize(
    ("name", "is_enabled"),
    [
        ("topicLevelPoliciesEnabled", True),
        ("topicLevelPoliciesEnabled", False),
        ("systemTopicEnabled", False),
    ],
)
async def test_topic_level_policies_enabled(name: str, is_enabled: bool) -> None:
    settings = {name: is_enabled}
    async with broker_with(**settings) as broker, client_of(broker) as client:
        await broker.service.resources.topic_policies.create(
            TopicName.parse(TOPIC), TopicPolicies(max_producers=1)
        )
        await client.create_producer(TOPIC)
        answer = await client.create_producer(TOPIC, 2)
        assert (answer.type == BaseCommand.ERROR) == is_enabled


@pytest.mark.setting("httpMaxRequestHeaderSize")
async def test_http_max_request_header_size() -> None:
    async with broker_with(httpMaxRequestHeaderSize=1000) as broker:
        status, _ = await http(broker, "GET", "/admin/v2/clusters", **{"X-Long": "x" * 1000})
        assert status == 431


@pytest.mark.setting("httpMaxRequestSize")
async def test_http_max_request_size() -> None:
    async with broker_with(httpMaxRequestSize=10) as broker:
        status, _ = await http(broker, "PUT", "/admin/v2/tenants/t", {"adminRoles": ["x" * 100]})
        assert status == 413


@pytest.mark.setting("maxHttpServerConnections")
async def test_max_http_server_connections() -> None:
    async with broker_with(maxHttpServerConnections=1) as broker:
        address = urlsplit(broker.web_service_url)
        _, writer = await asyncio.open_connection(address.hostname, address.port)
        await asyncio.sleep(0)
        assert (await http(broker, "GET", "/admin/v2/clusters"))[0] == 0
        writer.close()


@pytest.mark.setting("maxHttpServerConnectionsPerIp")
async def test_max_http_server_connections_per_ip() -> None:
    async with broker_with(maxHttpServerConnectionsPerIp=1) as broker:
        address = urlsplit(broker.web_service_url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(b"GET /admin/v2/clusters HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert (await http(broker, "GET", "/admin/v2/clusters"))[0] == 0
        writer.close()
