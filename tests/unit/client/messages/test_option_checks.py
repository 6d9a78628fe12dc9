"""Options and arguments of a wrong kind are refused where they are written, by name and value."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pulsar
import pytest

from pulsar_py.client.acknowledging.redelivery_backoff import MultiplierRedeliveryBackoff
from pulsar_py.client.brokers.client_config import ClientConfig
from pulsar_py.client.client import Client
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.consuming.consumer_interceptor import ConsumerInterceptor
from pulsar_py.client.consuming.dead_letter import ConsumerDeadLetterPolicy
from pulsar_py.client.consuming.key_shared_policy import ConsumerKeySharedPolicy, KeyHashRange
from pulsar_py.client.many_topics.multi_topics_consumer import MultiTopicsConsumer
from pulsar_py.client.messages import option_checks
from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.client.producing.producer_config import ProducerConfig
from pulsar_py.client.producing.producer_interceptor import ProducerInterceptor
from pulsar_py.client.reading.reader_config import ReaderConfig
from pulsar_py.client.receiving.batch_receive import ConsumerBatchReceivePolicy
from pulsar_py.client.security.crypto_keys import CryptoKeyReader
from pulsar_py.client.shared.enums import ConsumerType, InitialPosition, KeySharedMode
from pulsar_py.common.errors import InvalidConfigurationError, InvalidMessageError
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, MessageId
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.schema import StringSchema
from tests.scripted_broker import ScriptedBroker, simulated, simulated_client

CHECKED = (
    ClientConfig,
    ConsumerBatchReceivePolicy,
    ConsumerConfig,
    ConsumerKeySharedPolicy,
    ConsumerDeadLetterPolicy,
    KeyHashRange,
    MultiplierRedeliveryBackoff,
    ProducerConfig,
    ReaderConfig,
)


@pytest.mark.parametrize("config", CHECKED)
def test_each_annotation_has_its_kind(config: Any) -> None:
    assert {each.type for each in fields(config)} <= option_checks.KINDS.keys()


def test_each_kind_is_some_annotation_of_ours() -> None:
    written = {each.type for config in CHECKED for each in fields(config)}
    assert option_checks.KINDS.keys() - written == {"str"}  # which arguments have


WRONG = [
    (ConsumerConfig, "consumer_type", "Shared", "one of ConsumerType's members Exclusive, Shared"),
    (ConsumerConfig, "consumer_type", 1, "one of ConsumerType's members"),
    (ConsumerConfig, "consumer_type", None, "one of ConsumerType's members"),
    (ConsumerConfig, "initial_position", "earliest", "one of InitialPosition's members"),
    (ConsumerConfig, "initial_position", 1, "one of InitialPosition's members"),
    (ConsumerConfig, "initial_position", ConsumerType.Shared, "one of InitialPosition's members"),
    (ConsumerConfig, "subscription_mode", "Durable", "one of SubscriptionMode's members"),
    (ConsumerConfig, "batch_index_ack_enabled", "no", "True or False"),
    (ConsumerConfig, "start_paused", 1, "True or False"),
    (ConsumerConfig, "properties", [("a", "b")], "a mapping of text to text"),
    (ConsumerConfig, "properties", {"a": 1}, "a mapping of text to text"),
    (ConsumerConfig, "subscription_properties", "a=b", "a mapping of text to text"),
    (ConsumerConfig, "receiver_queue_size", "5", "a whole number"),
    (ConsumerConfig, "receiver_queue_size", 2.5, "a whole number"),
    (ConsumerConfig, "receiver_queue_size", True, "a whole number"),
    (ConsumerConfig, "consumer_name", b"x", "text"),
    (ConsumerConfig, "message_listener", "print", "a function"),
    (ConsumerConfig, "interceptors", ConsumerInterceptor(), "a list of ConsumerInterceptors"),
    (ConsumerConfig, "interceptors", [ConsumerInterceptor], "a list of ConsumerInterceptors"),
    (ConsumerConfig, "interceptors", [ProducerInterceptor()], "a list of ConsumerInterceptors"),
    (ConsumerConfig, "batch_receive_policy", None, "a ConsumerBatchReceivePolicy"),
    (ConsumerConfig, "batch_receive_policy", (1, 2, 3), "a ConsumerBatchReceivePolicy"),
    (ConsumerConfig, "crypto_key_reader", "key.pem", "a CryptoKeyReader"),
    (ConsumerConfig, "crypto_key_reader", CryptoKeyReader, "a CryptoKeyReader"),
    (ConsumerConfig, "consumer_event_listener", print, "a ConsumerEventListener"),
    (ConsumerConfig, "key_shared_policy", "Sticky", "a ConsumerKeySharedPolicy"),
    (ConsumerConfig, "dead_letter_policy", 3, "a ConsumerDeadLetterPolicy"),
    (ConsumerConfig, "negative_ack_redelivery_backoff", 3, "a RedeliveryBackoff"),
    (ConsumerConfig, "schema", str, "a Schema"),
    (ConsumerConfig, "schema", StringSchema, "a Schema"),
    (ProducerConfig, "batching_enabled", "no", "True or False"),
    (ProducerConfig, "access_mode", "Exclusive", "one of ProducerAccessMode's members"),
    (ProducerConfig, "batching_max_publish_delay_ms", "10", "a number"),
    (ProducerConfig, "message_router", 1, "a function"),
    (ProducerConfig, "interceptors", "abc", "a list of ProducerInterceptors"),
    (ProducerConfig, "encryption_key", 5, "text .str., or a list of texts"),
    (ReaderConfig, "start_message_id_inclusive", "yes", "True or False"),
    (ReaderConfig, "reader_listener", 5, "a function"),
    (ReaderConfig, "key_hash_ranges", [(1, 2, 3)], "a list of pairs"),
    (ReaderConfig, "key_hash_ranges", (1, 2), "a list of pairs"),
    (ClientConfig, "tls_validate_hostname", "no", "True or False"),
    (ClientConfig, "operation_timeout_seconds", "30", "a number"),
    (ClientConfig, "listener_name", 5, "text"),
    (ConsumerKeySharedPolicy, "key_shared_mode", "Sticky", "one of KeySharedMode's members"),
    (ConsumerBatchReceivePolicy, "max_num_message", "9", "a whole number"),
    (ConsumerDeadLetterPolicy, "max_redeliver_count", None, "a whole number"),
]


@pytest.mark.parametrize(("config", "option", "value", "expected"), WRONG)
def test_what_is_of_a_wrong_kind_is_named(
    config: Any, option: str, value: object, expected: str
) -> None:
    shown = repr(value)[:90]
    with pytest.raises(
        InvalidConfigurationError, match=f"^{re.escape(f'{option}={shown}')}.*: expected {expected}"
    ):
        config(**{option: value})


def test_long_values_are_cut() -> None:
    with pytest.raises(InvalidConfigurationError) as caught:
        ProducerConfig(producer_name=b"x" * 10_000)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 200


class Index:
    """As numpy's integers are."""

    def __index__(self) -> int:
        return 5

    def __lt__(self, other: int) -> bool:
        return other > 5


class Keys:
    """No CryptoKeyReader by birth."""

    def get_public_key(self, key_name: str, metadata: Any) -> bytes:
        return b""

    def get_private_key(self, key_name: str, metadata: Any) -> bytes:
        return b""


def test_what_does_the_same_is_taken() -> None:
    config = ConsumerConfig(
        receiver_queue_size=Index(),  # type: ignore[arg-type]
        crypto_key_reader=Keys(),  # type: ignore[arg-type]
        auto_update_partitions_interval_seconds=2,
        interceptors=(ConsumerInterceptor(),),
        key_shared_policy=ConsumerKeySharedPolicy(
            KeySharedMode.Sticky, sticky_ranges=[(0, 5), KeyHashRange(7, 8)]
        ),
        schema=StringSchema(),
        message_listener=lambda consumer, message: None,
    )
    assert config.is_durable


def test_the_official_clients_members_become_ours() -> None:
    options = {
        "consumer_type": pulsar.ConsumerType.KeyShared,
        "initial_position": pulsar.InitialPosition.Earliest,
        "start_paused": True,
    }
    assert option_checks.own_members(options, ConsumerConfig) == {
        "consumer_type": ConsumerType.KeyShared,
        "initial_position": InitialPosition.Earliest,
        "start_paused": True,
    }
    mixed_up = {"initial_position": pulsar.ConsumerType.Shared}
    with pytest.raises(InvalidConfigurationError, match="initial_position="):
        ConsumerConfig(**option_checks.own_members(mixed_up, ConsumerConfig))


@pytest.mark.parametrize("url", [None, 5, b"pulsar://a"])
def test_a_client_needs_a_url(url: Any) -> None:
    with pytest.raises(InvalidConfigurationError, match=r"^service_url=.*: expected a URL"):
        Client(url)


@simulated
async def test_wrong_arguments_send_nothing(broker: ScriptedBroker) -> None:
    wrong: Any
    async with simulated_client(broker) as client:
        for wrong in (5, None, b"x"):
            with pytest.raises(InvalidConfigurationError, match=r"^topic=.*: expected text"):
                await client.create_producer(wrong)
            with pytest.raises(InvalidConfigurationError, match=r"^topic=.*: expected a topic"):
                await client.subscribe(wrong, "s")
            with pytest.raises(InvalidConfigurationError, match=r"^subscription_name="):
                await client.subscribe("t", wrong)
            with pytest.raises(InvalidConfigurationError, match=r"^topic="):
                await client.create_table_view(wrong)
            with pytest.raises(InvalidConfigurationError, match=r"^topic="):
                await client.get_topic_partitions(wrong)
        for wrong in (b"x", "earliest", 5, {"t": 5}):
            with pytest.raises(InvalidConfigurationError, match=r"^start_message_id=.*MessageId"):
                await client.create_reader("t", wrong)
        wrong = "Shared"
        with pytest.raises(InvalidConfigurationError, match=r"^consumer_type='Shared'"):
            await client.subscribe("t", "s", consumer_type=wrong)
        with pytest.raises(
            InvalidConfigurationError, match="key_shared_policy needs consumer_type KeyShared"
        ):
            await client.subscribe("t", "s", key_shared_policy=ConsumerKeySharedPolicy())
        assert not broker.of(BaseCommand.SUBSCRIBE)
        assert not broker.of(BaseCommand.PRODUCER)
        assert not broker.of(BaseCommand.LOOKUP)


@simulated
async def test_a_consumer_refuses_what_is_no_message_and_no_position(
    broker: ScriptedBroker,
) -> None:
    async with simulated_client(broker) as client:
        consumer = await client.subscribe("t", "s")
        assert isinstance(consumer, Consumer)
        await refuses(consumer, broker)


@simulated
async def test_so_does_a_consumer_of_several_topics(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        consumer = await client.subscribe(["t"], "s")
        assert isinstance(consumer, MultiTopicsConsumer)
        await refuses(consumer, broker)


async def refuses(consumer: Consumer | MultiTopicsConsumer, broker: ScriptedBroker) -> None:
    wrong: Any
    for wrong in (None, b"x", "x", 5, [None], [b"x"], [MessageId(1, 1), 5]):
        with pytest.raises(InvalidMessageError, match="expected a message"):
            await consumer.acknowledge(wrong)
        with pytest.raises(InvalidMessageError, match="expected a message"):
            await consumer.acknowledge_cumulative(wrong)
        with pytest.raises(InvalidMessageError, match="expected a message"):
            consumer.negative_acknowledge(wrong)
    for wrong in ("x", 1.5, -5, None, True, b"x", ["x"], int, {"t": 5}):
        with pytest.raises(InvalidConfigurationError, match=r"^seek target=.*milliseconds"):
            await consumer.seek(wrong)
    with pytest.raises(InvalidConfigurationError, match=r"^seek target=-1:"):
        await consumer.seek(lambda topic: -1)
    assert not broker.of(BaseCommand.SEEK)
    assert not broker.of(BaseCommand.ACK)


@simulated
async def test_a_reader_refuses_what_is_no_position(broker: ScriptedBroker) -> None:
    wrong: Any = "x"
    async with simulated_client(broker) as client:
        reader = await client.create_reader("t", EARLIEST_MESSAGE_ID)
        with pytest.raises(InvalidConfigurationError, match=r"^seek target='x':"):
            await reader.seek(wrong)
        assert not broker.of(BaseCommand.SEEK)


def test_messages_may_come_as_any_collection() -> None:
    one = MessageId(1, 1)
    assert list(option_checks.messages_of(one, "c")) == [one]
    assert list(option_checks.messages_of(deque([one, one]), "c")) == [one, one]
    assert list(option_checks.messages_of({one}, "c")) == [one]


@pytest.mark.parametrize("delay", [5, 1.5, "5", timedelta(milliseconds=-1)])
def test_a_delay_is_a_timedelta_from_now_on(delay: Any) -> None:
    with pytest.raises(InvalidConfigurationError, match=r"^deliver_after=.*: expected a timedelta"):
        OutgoingMessage(b"", deliver_after=delay)
    assert OutgoingMessage(b"", deliver_after=timedelta(0), now_millis=3).deliver_at_time == 3


def test_a_class_instead_of_a_schema_is_told_which_schemas_it_has() -> None:
    with pytest.raises(InvalidConfigurationError, match=r"give JsonSchema\(Case\) or AvroSchema"):
        ProducerConfig.of({"schema": type("Case", (), {})})
