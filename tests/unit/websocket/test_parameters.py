"""Parameters of handshakes: what they mean, which wrong values are refused, and which ignored."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest

from pulsar_py.client.shared.enums import (
    CompressionType,
    ConsumerCryptoFailureAction,
    ConsumerType,
    HashingScheme,
    InitialPosition,
    PartitionsRoutingMode,
    SubscriptionMode,
)
from pulsar_py.common.errors import CryptoError, InvalidConfigurationError
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, LATEST_MESSAGE_ID, MessageId
from pulsar_py.websocket.parameters import (
    MAX_QUEUE,
    consumer_parameters,
    parameters_of,
    producer_options,
    reader_parameters,
    token_of,
    topics_of,
)

ID = MessageId(62, 63, batch_index=62)


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", {"hashing_scheme": HashingScheme.JavaStringHash}),
        ("producerName=p&initialSequenceId=9", {"producer_name": "p", "initial_sequence_id": 9}),
        ("hashingScheme=Murmur3_32Hash", {"hashing_scheme": HashingScheme.Murmur3_32Hash}),
        ("sendTimeoutMillis=0", {"send_timeout_millis": 0}),
        (
            "messageRoutingMode=SinglePartition",
            {"message_routing_mode": PartitionsRoutingMode.UseSinglePartition},
        ),
        ("compressionType=ZSTD", {"compression_type": CompressionType.ZSTD}),
        (
            "batchingEnabled=true&batchingMaxMessages=3&batchingMaxPublishDelay=7",
            {
                "batching_enabled": True,
                "batching_max_messages": 3,
                "batching_max_publish_delay_ms": 7,
            },
        ),
    ],
)
def test_options_of_a_producer(query: str, options: dict[str, Any]) -> None:
    made = producer_options(parameters_of(query))
    assert {name: made.get(name) for name in options} == options


@pytest.mark.parametrize(
    "query",
    ["maxPendingMessages=-1", "maxPendingMessages=x", "batchingEnabled=perhaps", "colour=red",
     "batchingMaxMessages=x", "batchingMaxPublishDelay=x"],
)  # fmt: skip
def test_some_wrong_values_of_a_producer_are_ignored(query: str) -> None:
    assert producer_options(parameters_of(query)) == producer_options({})


@pytest.mark.parametrize(
    "query",
    ["producerName=", "initialSequenceId=x", "hashingScheme=x", "sendTimeoutMillis=abc",
     "sendTimeoutMillis=-1", "sendTimeoutMillis=", "messageRoutingMode=x", "compressionType=lz4",
     "batchingEnabled=true&batchingMaxMessages=x", "batchingEnabled=true&batchingMaxMessages=0"],
)  # fmt: skip
def test_others_are_refused(query: str) -> None:
    with pytest.raises(InvalidConfigurationError, match="expected"):
        producer_options(parameters_of(query))


def test_the_broker_has_no_keys_to_encrypt_with() -> None:
    with pytest.raises(CryptoError, match="encryptionKeys"):
        producer_options({"encryptionKeys": "k"})


def test_who_encrypts_is_neither_batched_nor_compressed() -> None:
    keys = base64.b64encode(b'{"k": {"keyValue": "YQ=="}}').decode()
    options = producer_options(
        {"encryptionKeys": keys, "batchingEnabled": "true", "compressionType": "LZ4"}
    )
    assert options["encryption_key"] == ["k"]
    assert options.keys().isdisjoint({"batching_enabled", "compression_type"})


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("ackTimeoutMillis=0", {"unacked_messages_timeout_ms": 0}),
        ("ackTimeoutMillis=1000", {"unacked_messages_timeout_ms": 1000}),
        ("subscriptionType=Key_Shared", {"consumer_type": ConsumerType.KeyShared}),
        ("subscriptionMode=NonDurable", {"subscription_mode": SubscriptionMode.NonDurable}),
        ("subscriptionInitialPosition=Earliest", {"initial_position": InitialPosition.Earliest}),
        ("consumerName=me&priorityLevel=3", {"consumer_name": "me", "priority_level": 3}),
        ("negativeAckRedeliveryDelay=5", {"negative_ack_redelivery_delay_ms": 5}),
        (
            "cryptoFailureAction=CONSUME",
            {"crypto_failure_action": ConsumerCryptoFailureAction.CONSUME},
        ),
    ],
)
def test_options_of_a_consumer(query: str, options: dict[str, Any]) -> None:
    made = consumer_parameters(parameters_of(query)).options
    assert {name: made.get(name) for name in options} == options


def test_dead_letters_need_a_count_and_a_shared_subscription() -> None:
    given = {"subscriptionType": "Shared", "maxRedeliverCount": "2", "deadLetterTopic": "d"}
    policy = consumer_parameters(given).options["dead_letter_policy"]
    assert policy is not None
    assert (policy.max_redeliver_count, policy.dead_letter_topic) == (2, "d")
    given["subscriptionType"] = "Exclusive"
    assert "dead_letter_policy" not in consumer_parameters(given).options
    with pytest.raises(InvalidConfigurationError, match="maxRedeliverCount"):
        consumer_parameters({"deadLetterTopic": "d"})


def test_a_window_is_bounded_and_pull_mode_is_said_exactly() -> None:
    assert consumer_parameters({}).window_count == MAX_QUEUE
    assert consumer_parameters({"receiverQueueSize": "0"}).window_count == 1
    assert consumer_parameters({"receiverQueueSize": "1000000"}).window_count == MAX_QUEUE
    assert reader_parameters({"receiverQueueSize": "2"}).window_count == 2
    assert consumer_parameters({"pullMode": "true"}).is_pull
    assert not consumer_parameters({"pullMode": "perhaps"}).is_pull


@pytest.mark.parametrize(
    "query",
    ["ackTimeoutMillis=-1", "ackTimeoutMillis=5", "subscriptionType=", "subscriptionType=shared",
     "subscriptionMode=x", "subscriptionInitialPosition=x", "receiverQueueSize=-1",
     "consumerName=", "priorityLevel=-1", "negativeAckRedeliveryDelay=-1", "maxRedeliverCount=0"],
)  # fmt: skip
def test_wrong_values_of_a_consumer_are_refused(query: str) -> None:
    with pytest.raises(InvalidConfigurationError):
        consumer_parameters(parameters_of(query))


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", EARLIEST_MESSAGE_ID),
        ("latest", LATEST_MESSAGE_ID),
        ("", LATEST_MESSAGE_ID),
        (base64.b64encode(ID.serialize()).decode(), ID),
    ],
)
def test_where_a_reader_begins(text: str, start: MessageId) -> None:
    assert reader_parameters(parameters_of(f"messageId={text}")).start == start


@pytest.mark.parametrize("text", ["***", "EARLIEST", "AAAA", "1:1"])
def test_a_reader_does_not_begin_at_what_is_no_id(text: str) -> None:
    with pytest.raises(InvalidConfigurationError, match="messageId"):
        reader_parameters({"messageId": text})


def test_topics_of_a_consumer_of_several() -> None:
    assert topics_of({"topics": "a, b"}) == ["a", "b"]
    assert topics_of({"topicsPattern": "a.*"}) == re.compile("a.*")
    no_patterns = [{"topicsPattern": each} for each in ("(", "(" * 5000, "a{99999999999}")]
    for given in ({}, {"topics": "a", "topicsPattern": "b"}, *no_patterns):
        with pytest.raises(InvalidConfigurationError):
            topics_of(given)


def test_a_query_has_one_token() -> None:
    assert token_of("a=b&token=x%2By") == "x+y"
    assert token_of("token=") == ""
    for query in ("token=good&token=bad", "token=good&%74oken=good"):
        with pytest.raises(InvalidConfigurationError, match="2 parameters token"):
            token_of(query)
