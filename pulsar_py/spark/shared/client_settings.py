"""Translates the settings of Pulsar's Java clients into arguments of ours (pure).

`pulsar.client.operationTimeoutMs` becomes `operation_timeout_seconds` and so on; the tables say
which, and how the value is read. Settings of the JVM's threads and sockets have no counterpart and
are ignored; a name that the Java class does not have is an error that proposes the nearest. Spark
hands names over in lower case.

Source: ClientConfigurationData, ReaderConfigurationData and ProducerConfigurationData in Pulsar's
Java client.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from pulsar_py.client.security.authentication import Authentication
from pulsar_py.client.security.authentication_plugins import authentication_from_plugin
from pulsar_py.client.shared.enums import CompressionType, HashingScheme
from pulsar_py.common.errors import ConfigurationError

Value = str | int | float | bool | None
Reader = Callable[[str], Value]
"""Reads a setting's text; raises ValueError where the text has no meaning."""


def _seconds_of_millis(text: str) -> float:
    return int(text) / 1000


def _millis_of_nanos(text: str) -> int:
    return int(text) // 1_000_000


def _millis_of_micros(text: str) -> float:
    return int(text) / 1000


def _member(kind: type[IntEnum]) -> Reader:
    """Reads the name of a member, in any case."""
    by_name = {member.name.lower(): member for member in kind}

    def read(text: str) -> Value:
        member = by_name.get(text.lower())
        if member is None:
            raise ValueError(f"expected one of {', '.join(each.name for each in kind)}")
        return member

    return read


def _at_least_one(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError("expected at least 1")
    return value


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return text.lower() == "true"


CLIENT: Final[Mapping[str, tuple[str, Reader]]] = {
    "operationTimeoutMs": ("operation_timeout_seconds", _seconds_of_millis),
    "connectionTimeoutMs": ("connection_timeout_ms", int),
    "connectionsPerBroker": ("connections_per_broker", int),
    "concurrentLookupRequest": ("concurrent_lookup_requests", int),
    "maxLookupRedirects": ("max_lookup_redirects", int),
    "keepAliveIntervalSeconds": ("keep_alive_interval_seconds", float),
    "connectionMaxIdleSeconds": ("connection_max_idle_seconds", float),
    "initialBackoffIntervalNanos": ("initial_backoff_interval_ms", _millis_of_nanos),
    "maxBackoffIntervalNanos": ("max_backoff_interval_ms", _millis_of_nanos),
    "memoryLimitBytes": ("memory_limit_bytes", int),
    "statsIntervalSeconds": ("stats_interval_in_seconds", float),
    "listenerName": ("listener_name", str),
    "tlsTrustCertsFilePath": ("tls_trust_certs_file_path", str),
    "tlsAllowInsecureConnection": ("tls_allow_insecure_connection", _flag),
    "tlsHostnameVerificationEnable": ("tls_validate_hostname", _flag),
    "tlsCertificateFilePath": ("tls_certificate_file_path", str),
    "tlsKeyFilePath": ("tls_private_key_file_path", str),
}
"""The names of Java's settings, of our arguments, and functions that read the values."""

CLIENT_WITHOUT_EFFECT: Final = frozenset(
    {
        "serviceUrl",
        "numIoThreads",
        "numListenerThreads",
        "useTcpNoDelay",
        "useTls",
        "maxLookupRequest",
        "maxNumberOfRejectedRequestPerConnection",
        "lookupTimeoutMs",
        "requestTimeoutMs",
        "enableBusyWait",
        "useKeyStoreTls",
    }
)

READER: Final[Mapping[str, tuple[str, Reader]]] = {
    "receiverQueueSize": ("queue_messages", _at_least_one),
    "readerName": ("name", str),
    "subscriptionRolePrefix": ("subscription_prefix", str),
    "readCompacted": ("is_compacted", _flag),
}

READER_WITHOUT_EFFECT: Final = frozenset(
    {
        "topicName",
        "topicNames",
        "startMessageId",
        "startMessageFromRollbackDurationInSec",
        "resetIncludeHead",
        "subscriptionName",
        "keyHashRanges",
        "poolMessages",
        "autoUpdatePartitions",
        "autoUpdatePartitionsIntervalSeconds",
        "autoAckOldestChunkedMessageOnQueueFull",
        "expireTimeOfIncompleteChunkedMessageMillis",
        "maxPendingChunkedMessage",
    }
)
"""The connector itself decides where reading starts, and about partitions and chunks."""

PRODUCER: Final[Mapping[str, tuple[str, Reader]]] = {
    "producerName": ("producer_name", str),
    "sendTimeoutMs": ("send_timeout_millis", int),
    "maxPendingMessages": ("max_pending_messages", int),
    "maxPendingMessagesAcrossPartitions": ("max_pending_messages_across_partitions", int),
    "batchingEnabled": ("batching_enabled", _flag),
    "batchingMaxMessages": ("batching_max_messages", int),
    "batchingMaxBytes": ("batching_max_allowed_size_in_bytes", int),
    "batchingMaxPublishDelayMicros": ("batching_max_publish_delay_ms", _millis_of_micros),
    "chunkingEnabled": ("chunking_enabled", _flag),
    "compressionType": ("compression_type", _member(CompressionType)),
    "hashingScheme": ("hashing_scheme", _member(HashingScheme)),
}

PRODUCER_WITHOUT_EFFECT: Final = frozenset(
    {"blockIfQueueFull", "messageRoutingMode", "autoUpdatePartitions", "topicName"}
)


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """The settings of `pulsar.reader.*`; options of the connector take precedence."""

    # The receiver queue, at most; fewer messages wait where they are large.
    queue_messages: int | None = None
    # The consumer's name in the broker's statistics.
    name: str | None = None
    subscription_prefix: str | None = None
    is_compacted: bool = False


_AUTH_PLUGIN: Final = "authpluginclassname"
_AUTH_PARAMS: Final = "authparams"


def translate(
    prefix: str,
    settings: Mapping[str, str],
    table: Mapping[str, tuple[str, Reader]],
    without_effect: frozenset[str] = frozenset(),
) -> dict[str, Value]:
    """Our keyword arguments for settings of the Java client.

    Args:
        prefix: Stands before the names in errors: `pulsar.client.`.
        settings: Lower-cased names to texts.
        table: The settings that have a counterpart.
        without_effect: The settings that Java knows and we ignore.

    Raises:
        ConfigurationError: A name is unknown, or a value can't be read.
    """
    known = {name.lower(): name for name in (*table, *without_effect)}
    ours: dict[str, Value] = {}
    for lowered, text in settings.items():
        if lowered not in known:
            near = difflib.get_close_matches(lowered, known, n=1)
            hint = f", did you mean '{prefix}{known[near[0]]}'?" if near else ""
            raise ConfigurationError(f"unknown option '{prefix}{lowered}'{hint}")
        name = known[lowered]
        if name in table:
            our_name, read = table[name]
            try:
                ours[our_name] = read(text.strip())
            except ValueError as error:
                raise ConfigurationError(f"{prefix}{name}: {text!r}: {error}") from error
    return ours


def reader_settings(settings: Mapping[str, str]) -> ReaderSettings:
    """The settings of `pulsar.reader.*`, parsed.

    Raises:
        ConfigurationError: A name is unknown, or a value can't be read.
    """
    arguments = translate("pulsar.reader.", settings, READER, READER_WITHOUT_EFFECT)
    return ReaderSettings(**arguments)  # type: ignore[arg-type] # the table has its names and types


def client_arguments(settings: Mapping[str, str]) -> tuple[dict[str, Value], Authentication | None]:
    """Keyword arguments of `Client`, and its authentication, if any.

    Raises:
        ConfigurationError: A name is unknown, or a value can't be read.
    """
    rest = dict(settings)
    plugin, params = rest.pop(_AUTH_PLUGIN, ""), rest.pop(_AUTH_PARAMS, "")
    arguments = translate("pulsar.client.", rest, CLIENT, CLIENT_WITHOUT_EFFECT)
    if params and not plugin:
        raise ConfigurationError(
            "pulsar.client.authParams is given, and pulsar.client.authPluginClassName, the"
            " plugin that reads it, is not"
        )
    return arguments, authentication_from_plugin(plugin, params) if plugin else None
