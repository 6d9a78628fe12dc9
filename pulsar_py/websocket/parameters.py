"""Reads query parameters of a handshake into options of our client (pure).

Unknown parameters are ignored. So are wrong values of `maxPendingMessages`, `batchingEnabled`,
`pullMode` and `cryptoFailureAction`, and of `batching…` where nothing is batched; all other wrong
values are refused. With `encryptionKeys` a producer's client encrypts by itself (`encryption`), and
what would have the broker batch or compress its payloads is ignored.

Source: ProducerHandler, ConsumerHandler, ReaderHandler in Pulsar.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar
from urllib.parse import parse_qsl

from pulsar_py.client.consuming.dead_letter import ConsumerDeadLetterPolicy
from pulsar_py.client.options import ConsumerOptions, ProducerOptions, ReaderOptions
from pulsar_py.client.shared.enums import (
    ConsumerCryptoFailureAction,
    ConsumerType,
    HashingScheme,
    InitialPosition,
    PartitionsRoutingMode,
    SubscriptionMode,
)
from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, LATEST_MESSAGE_ID, MessageId
from pulsar_py.websocket.encryption import wrapped_keys
from pulsar_py.websocket.frames import COMPRESSIONS

__all__ = [
    "MAX_QUEUE",
    "TOKEN",
    "ConsumerParameters",
    "ReaderParameters",
    "consumer_parameters",
    "parameters_of",
    "producer_options",
    "reader_parameters",
    "token_of",
    "topics_of",
]

TOKEN: Final = "token"  # noqa: S105 - the name of a parameter
MAX_QUEUE: Final = 1000
"""Messages that a client may have without an answer: more are not sent, whatever it asks for."""
PREFETCHED_COUNT: Final = 4
"""Messages that wait in the broker's own client for a slow reader. Its bytes are bounded by so many
entries, not by `receiverQueueSize`, which bounds what the reader has not acknowledged."""
MIN_ACK_TIMEOUT_MILLIS: Final = 1000
MAX_INT: Final = 2**31 - 1
MAX_LONG: Final = 2**63 - 1

E = TypeVar("E", bound=Enum)

_HASHES: Final = {
    "JavaStringHash": HashingScheme.JavaStringHash,
    "Murmur3_32Hash": HashingScheme.Murmur3_32Hash,
}
_ROUTES: Final = {
    "SinglePartition": PartitionsRoutingMode.UseSinglePartition,
    "RoundRobinPartition": PartitionsRoutingMode.RoundRobinDistribution,
    # Its router would be a class of the client, which is nowhere here.
    "CustomPartition": PartitionsRoutingMode.RoundRobinDistribution,
}
_TYPES: Final = {
    "Exclusive": ConsumerType.Exclusive,
    "Shared": ConsumerType.Shared,
    "Failover": ConsumerType.Failover,
    "Key_Shared": ConsumerType.KeyShared,
}
_MODES: Final = {each.name: each for each in SubscriptionMode}
_POSITIONS: Final = {each.name: each for each in InitialPosition}
_CRYPTO_ACTIONS: Final = {each.name: each for each in ConsumerCryptoFailureAction}


@dataclass(frozen=True, slots=True)
class ConsumerParameters:
    """The options of a consumer, and how it is sent messages."""

    options: ConsumerOptions[bytes]
    window_count: int
    """Messages without an answer, in push mode."""
    is_pull: bool


@dataclass(frozen=True, slots=True)
class ReaderParameters:
    """The options of a reader, where it begins, and how many messages it is sent ahead."""

    options: ReaderOptions[bytes]
    start: MessageId
    window_count: int


def parameters_of(raw_query: str) -> dict[str, str]:
    """The parameters of a query; of one that comes twice, the first."""
    values: dict[str, str] = {}
    for name, value in parse_qsl(raw_query, keep_blank_values=True):
        values.setdefault(name, value)
    return values


def token_of(raw_query: str) -> str:
    """The token that a query has.

    Raises:
        InvalidConfigurationError: It has several: a proxy may have checked another than counts.
    """
    tokens = [
        value for name, value in parse_qsl(raw_query, keep_blank_values=True) if name == TOKEN
    ]
    if len(tokens) != 1:
        raise InvalidConfigurationError(
            f"the query has {len(tokens)} parameters {TOKEN}, expected one"
        )
    return tokens[0]


def producer_options(given: Mapping[str, str]) -> ProducerOptions[bytes]:
    """The options of a producer.

    Raises:
        InvalidConfigurationError: A value is not of those that may be.
        CryptoError: The broker is to encrypt.
    """
    options: ProducerOptions[bytes] = {
        "hashing_scheme": HashingScheme.JavaStringHash,
        "max_pending_messages": 0,  # the dialog bounds them, by reading no more frames
    }
    if "producerName" in given:
        options["producer_name"] = _name(given, "producerName")
    if "initialSequenceId" in given:
        options["initial_sequence_id"] = _integer(given, "initialSequenceId", maximum=MAX_LONG)
    if "hashingScheme" in given:
        options["hashing_scheme"] = _one_of(given, "hashingScheme", _HASHES)
    if "sendTimeoutMillis" in given:
        options["send_timeout_millis"] = _integer(given, "sendTimeoutMillis")
    if "messageRoutingMode" in given:
        options["message_routing_mode"] = _one_of(given, "messageRoutingMode", _ROUTES)
    if "encryptionKeys" in given:
        keys = wrapped_keys(given["encryptionKeys"])
        options["encryption_key"] = [each.key for each in keys.keys]
        options["crypto_key_reader"] = keys
        return options
    if "compressionType" in given:
        options["compression_type"] = _one_of(given, "compressionType", COMPRESSIONS)
    if _is_true(given, "batchingEnabled"):
        _set_batching(options, given)
    return options


def _set_batching(options: ProducerOptions[bytes], given: Mapping[str, str]) -> None:
    options["batching_enabled"] = True
    if "batchingMaxMessages" in given:
        options["batching_max_messages"] = _integer(given, "batchingMaxMessages", minimum=1)
    if "batchingMaxPublishDelay" in given:
        delay = _integer(given, "batchingMaxPublishDelay")
        options["batching_max_publish_delay_ms"] = delay


def consumer_parameters(given: Mapping[str, str]) -> ConsumerParameters:
    """The options of a consumer.

    Raises:
        InvalidConfigurationError: A value is not of those that may be, or one lacks another.
    """
    options: ConsumerOptions[bytes] = {
        "receiver_queue_size": PREFETCHED_COUNT,
        "max_total_receiver_queue_size_across_partitions": PREFETCHED_COUNT,
        "ack_grouping_time_ms": 0,
    }
    if "ackTimeoutMillis" in given:
        options["unacked_messages_timeout_ms"] = _ack_timeout(given)
    kind = ConsumerType.Exclusive
    if "subscriptionType" in given:
        kind = options["consumer_type"] = _one_of(given, "subscriptionType", _TYPES)
    if "subscriptionMode" in given:
        options["subscription_mode"] = _one_of(given, "subscriptionMode", _MODES)
    if "subscriptionInitialPosition" in given:
        position = _one_of(given, "subscriptionInitialPosition", _POSITIONS)
        options["initial_position"] = position
    if "consumerName" in given:
        options["consumer_name"] = _name(given, "consumerName")
    if "priorityLevel" in given:
        options["priority_level"] = _integer(given, "priorityLevel")
    if "negativeAckRedeliveryDelay" in given:
        delay = _integer(given, "negativeAckRedeliveryDelay")
        options["negative_ack_redelivery_delay_ms"] = delay
    policy = _dead_letters(given)
    if policy is not None and kind in {ConsumerType.Shared, ConsumerType.KeyShared}:
        options["dead_letter_policy"] = policy
    if (action := _CRYPTO_ACTIONS.get(given.get("cryptoFailureAction", ""))) is not None:
        options["crypto_failure_action"] = action
    return ConsumerParameters(options, _window(given), _is_true(given, "pullMode"))


def _ack_timeout(given: Mapping[str, str]) -> int:
    millis = _integer(given, "ackTimeoutMillis")
    if 0 < millis < MIN_ACK_TIMEOUT_MILLIS:
        raise _wrong(given, "ackTimeoutMillis", f"0, or at least {MIN_ACK_TIMEOUT_MILLIS}")
    return millis


def _dead_letters(given: Mapping[str, str]) -> ConsumerDeadLetterPolicy | None:
    if "maxRedeliverCount" in given:
        count = _integer(given, "maxRedeliverCount", minimum=1)
        return ConsumerDeadLetterPolicy(count, given.get("deadLetterTopic") or None)
    if "deadLetterTopic" in given:
        raise InvalidConfigurationError("deadLetterTopic needs maxRedeliverCount beside it")
    return None


def topics_of(given: Mapping[str, str]) -> list[str] | re.Pattern[str]:
    """The topics of a consumer of several, or their pattern.

    Raises:
        InvalidConfigurationError: There are none, both are there, or it is no pattern.
    """
    topics, pattern = given.get("topics"), given.get("topicsPattern")
    if bool(topics) == bool(pattern):
        raise InvalidConfigurationError("expected either topics=a,b or topicsPattern=…")
    if topics:
        return [each.strip() for each in topics.split(",") if each.strip()]
    try:
        return re.compile(str(pattern))
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidConfigurationError(f"topicsPattern={str(pattern)[:100]!r}: {error}") from None


def reader_parameters(given: Mapping[str, str]) -> ReaderParameters:
    """The options of a reader.

    Raises:
        InvalidConfigurationError: A value is not of those that may be.
    """
    options: ReaderOptions[bytes] = {
        "receiver_queue_size": PREFETCHED_COUNT,
        "max_total_receiver_queue_size_across_partitions": PREFETCHED_COUNT,
    }
    if "readerName" in given:
        options["reader_name"] = _name(given, "readerName")
    if (action := _CRYPTO_ACTIONS.get(given.get("cryptoFailureAction", ""))) is not None:
        options["crypto_failure_action"] = action
    return ReaderParameters(options, _start(given), _window(given))


def _start(given: Mapping[str, str]) -> MessageId:
    text = given.get("messageId", "")
    if text in {"", "latest"}:
        return LATEST_MESSAGE_ID
    if text == "earliest":
        return EARLIEST_MESSAGE_ID
    try:
        # A plus sign that was not encoded has become a space.
        return MessageId.parse(base64.b64decode(text.replace(" ", "+"), validate=True))
    except (ValueError, binascii.Error):
        raise _wrong(given, "messageId", "earliest, latest, or base64 of an id") from None


def _window(given: Mapping[str, str]) -> int:
    if "receiverQueueSize" not in given:
        return MAX_QUEUE
    return min(max(_integer(given, "receiverQueueSize"), 1), MAX_QUEUE)


def _name(given: Mapping[str, str], name: str) -> str:
    if not given[name].strip():
        raise _wrong(given, name, "a name")
    return given[name]


def _integer(
    given: Mapping[str, str], name: str, *, minimum: int = 0, maximum: int = MAX_INT
) -> int:
    text = given[name]
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or not minimum <= int(text) <= maximum:
        raise _wrong(given, name, f"a whole number from {minimum} to {maximum}")
    return int(text)


def _is_true(given: Mapping[str, str], name: str) -> bool:
    return given.get(name, "").lower() == "true"


def _one_of(given: Mapping[str, str], name: str, values: Mapping[str, E]) -> E:
    value = values.get(given[name])
    if value is None:
        raise _wrong(given, name, f"one of {', '.join(values)}")
    return value


def _wrong(given: Mapping[str, str], name: str, expected: str) -> InvalidConfigurationError:
    return InvalidConfigurationError(f"{name}={given[name][:100]!r}: expected {expected}")
