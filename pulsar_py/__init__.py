"""A broker, a client and pipelines that speak Apache Pulsar's protocols, in Python.

    async with pulsar_py.Broker() as broker:
        async with pulsar_py.Client(broker.service_url) as client:
            ...

Names are loaded on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsar_py.client.acknowledging.redelivery_backoff import (
        MultiplierRedeliveryBackoff,
        RedeliveryBackoff,
    )
    from pulsar_py.client.brokers.cluster_failover import (
        AutoClusterFailover,
        ControlledClusterFailover,
        ServiceInfo,
    )
    from pulsar_py.client.brokers.connection_events import ConnectionListener
    from pulsar_py.client.brokers.service_url import ServiceUrlControl, ServiceUrlProvider
    from pulsar_py.client.client import Client
    from pulsar_py.client.consuming.broker_statistics import BrokerConsumerStatistics
    from pulsar_py.client.consuming.consumer import Consumer
    from pulsar_py.client.consuming.consumer_events import ConsumerEventListener
    from pulsar_py.client.consuming.consumer_interceptor import ConsumerInterceptor
    from pulsar_py.client.consuming.dead_letter import ConsumerDeadLetterPolicy
    from pulsar_py.client.consuming.key_shared_policy import ConsumerKeySharedPolicy, KeyHashRange
    from pulsar_py.client.many_topics.multi_topics_consumer import MultiTopicsConsumer
    from pulsar_py.client.many_topics.pattern_consumer import PatternConsumer
    from pulsar_py.client.messages.message import Message, ReceivedMessageId
    from pulsar_py.client.messages.topic_message_id import (
        MultiMessageId,
        SeekTarget,
        TopicMessageId,
    )
    from pulsar_py.client.options import (
        ClientOptions,
        ConsumerOptions,
        ConsumerOptionsWithoutSchema,
        ProducerOptions,
        ReaderOptions,
        TableViewOptions,
    )
    from pulsar_py.client.producing.message_builder import OutgoingMessage
    from pulsar_py.client.producing.partitioned_producer import PartitionedProducer
    from pulsar_py.client.producing.producer import Producer
    from pulsar_py.client.producing.producer_config import MessageRouterFunction
    from pulsar_py.client.producing.producer_interceptor import ProducerInterceptor
    from pulsar_py.client.producing.send_result import SendResult
    from pulsar_py.client.reading.reader import Reader
    from pulsar_py.client.reading.table_view import TableView, TableViewListener
    from pulsar_py.client.receiving.batch_receive import ConsumerBatchReceivePolicy
    from pulsar_py.client.security.authentication import (
        Authentication,
        AuthenticationBasic,
        AuthenticationTLS,
        AuthenticationToken,
        TokenSupplier,
    )
    from pulsar_py.client.security.authentication_oauth2 import AuthenticationOauth2
    from pulsar_py.client.security.crypto_keys import CryptoKeyReader, EncryptionKeyInfo, KeyAnswer
    from pulsar_py.client.security.message_crypto import EncryptionContext, EncryptionKey
    from pulsar_py.client.shared.enums import (
        BatchingType,
        CompressionType,
        ConsumerCryptoFailureAction,
        ConsumerType,
        HashingScheme,
        InitialPosition,
        KeySharedMode,
        PartitionsRoutingMode,
        ProducerAccessMode,
        ProducerCryptoFailureAction,
        RegexSubscriptionMode,
        SubscriptionMode,
    )
    from pulsar_py.client.shared.statistics import (
        ClientStatistics,
        ConsumerStatistics,
        ProducerStatistics,
    )
    from pulsar_py.client.subscribe import AnyConsumer
    from pulsar_py.common.errors import (
        AlreadyClosedError,
        AuthenticationDataError,
        AuthenticationError,
        AuthorizationError,
        ChecksumError,
        ClientError,
        ClientTimeoutError,
        ConfigurationError,
        ConnectError,
        ConnectionClosedError,
        ConsumerAssignError,
        ConsumerBusyError,
        ConsumerNotFoundError,
        CryptoError,
        CumulativeAcknowledgementNotAllowedError,
        ForkedProcessError,
        IncompatibleSchemaError,
        InvalidConfigurationError,
        InvalidMessageError,
        InvalidServiceUrlError,
        InvalidTopicNameError,
        InvalidTxnStatusError,
        LookupFailedError,
        MemoryBufferFullError,
        MessageTooBigError,
        NotABrokerError,
        NotAllowedError,
        OperationNotSupportedError,
        PersistenceError,
        ProducerBlockedQuotaExceededError,
        ProducerBlockedQuotaExceededExceptionError,
        ProducerBusyError,
        ProducerFencedError,
        ProducerQueueFullError,
        ProtocolError,
        PulsarError,
        RemoteProtocolError,
        SchemaSerializationError,
        ServiceError,
        ServiceMetadataError,
        ServiceNotReadyError,
        SubscriptionNotFoundError,
        TooManyRequestsError,
        TopicNotFoundError,
        TopicTerminatedError,
        TransactionConflictError,
        TransactionCoordinatorNotFoundError,
        TransactionNotFoundError,
        UnknownServiceError,
        UnsupportedVersionError,
        UnusableCredentialsError,
    )
    from pulsar_py.common.loops.clock import Clock
    from pulsar_py.common.message_id import MessageId
    from pulsar_py.schema.schema import Schema
    from pulsar_py.schema.schema_info import SchemaInfo, SchemaType
    from pulsar_py.standalone import Broker

    __version__: str

__all__ = [
    "AlreadyClosedError",
    "AnyConsumer",
    "Authentication",
    "AuthenticationBasic",
    "AuthenticationDataError",
    "AuthenticationError",
    "AuthenticationOauth2",
    "AuthenticationTLS",
    "AuthenticationToken",
    "AuthorizationError",
    "AutoClusterFailover",
    "BatchingType",
    "Broker",
    "BrokerConsumerStatistics",
    "ChecksumError",
    "Client",
    "ClientError",
    "ClientOptions",
    "ClientStatistics",
    "ClientTimeoutError",
    "Clock",
    "CompressionType",
    "ConfigurationError",
    "ConnectError",
    "ConnectionClosedError",
    "ConnectionListener",
    "Consumer",
    "ConsumerAssignError",
    "ConsumerBatchReceivePolicy",
    "ConsumerBusyError",
    "ConsumerCryptoFailureAction",
    "ConsumerDeadLetterPolicy",
    "ConsumerEventListener",
    "ConsumerInterceptor",
    "ConsumerKeySharedPolicy",
    "ConsumerNotFoundError",
    "ConsumerOptions",
    "ConsumerOptionsWithoutSchema",
    "ConsumerStatistics",
    "ConsumerType",
    "ControlledClusterFailover",
    "CryptoError",
    "CryptoKeyReader",
    "CumulativeAcknowledgementNotAllowedError",
    "EncryptionContext",
    "EncryptionKey",
    "EncryptionKeyInfo",
    "ForkedProcessError",
    "HashingScheme",
    "IncompatibleSchemaError",
    "InitialPosition",
    "InvalidConfigurationError",
    "InvalidMessageError",
    "InvalidServiceUrlError",
    "InvalidTopicNameError",
    "InvalidTxnStatusError",
    "KeyAnswer",
    "KeyHashRange",
    "KeySharedMode",
    "LookupFailedError",
    "MemoryBufferFullError",
    "Message",
    "MessageId",
    "MessageRouterFunction",
    "MessageTooBigError",
    "MultiMessageId",
    "MultiTopicsConsumer",
    "MultiplierRedeliveryBackoff",
    "NotABrokerError",
    "NotAllowedError",
    "OperationNotSupportedError",
    "OutgoingMessage",
    "PartitionedProducer",
    "PartitionsRoutingMode",
    "PatternConsumer",
    "PersistenceError",
    "Producer",
    "ProducerAccessMode",
    "ProducerBlockedQuotaExceededError",
    "ProducerBlockedQuotaExceededExceptionError",
    "ProducerBusyError",
    "ProducerCryptoFailureAction",
    "ProducerFencedError",
    "ProducerInterceptor",
    "ProducerOptions",
    "ProducerQueueFullError",
    "ProducerStatistics",
    "ProtocolError",
    "PulsarError",
    "Reader",
    "ReaderOptions",
    "ReceivedMessageId",
    "RedeliveryBackoff",
    "RegexSubscriptionMode",
    "RemoteProtocolError",
    "Schema",
    "SchemaInfo",
    "SchemaSerializationError",
    "SchemaType",
    "SeekTarget",
    "SendResult",
    "ServiceError",
    "ServiceInfo",
    "ServiceMetadataError",
    "ServiceNotReadyError",
    "ServiceUrlControl",
    "ServiceUrlProvider",
    "SubscriptionMode",
    "SubscriptionNotFoundError",
    "TableView",
    "TableViewListener",
    "TableViewOptions",
    "TokenSupplier",
    "TooManyRequestsError",
    "TopicMessageId",
    "TopicNotFoundError",
    "TopicTerminatedError",
    "TransactionConflictError",
    "TransactionCoordinatorNotFoundError",
    "TransactionNotFoundError",
    "UnknownServiceError",
    "UnsupportedVersionError",
    "UnusableCredentialsError",
]

_HOMES = {
    "AlreadyClosedError": "pulsar_py.common.errors",
    "AnyConsumer": "pulsar_py.client.subscribe",
    "Authentication": "pulsar_py.client.security.authentication",
    "AuthenticationBasic": "pulsar_py.client.security.authentication",
    "AuthenticationDataError": "pulsar_py.common.errors",
    "AuthenticationError": "pulsar_py.common.errors",
    "AuthenticationOauth2": "pulsar_py.client.security.authentication_oauth2",
    "AuthenticationTLS": "pulsar_py.client.security.authentication",
    "AuthenticationToken": "pulsar_py.client.security.authentication",
    "AuthorizationError": "pulsar_py.common.errors",
    "AutoClusterFailover": "pulsar_py.client.brokers.cluster_failover",
    "BatchingType": "pulsar_py.client.shared.enums",
    "Broker": "pulsar_py.standalone",
    "BrokerConsumerStatistics": "pulsar_py.client.consuming.broker_statistics",
    "ChecksumError": "pulsar_py.common.errors",
    "Client": "pulsar_py.client.client",
    "ClientError": "pulsar_py.common.errors",
    "ClientOptions": "pulsar_py.client.options",
    "ClientStatistics": "pulsar_py.client.shared.statistics",
    "ClientTimeoutError": "pulsar_py.common.errors",
    "Clock": "pulsar_py.common.loops.clock",
    "CompressionType": "pulsar_py.client.shared.enums",
    "ConfigurationError": "pulsar_py.common.errors",
    "ConnectError": "pulsar_py.common.errors",
    "ConnectionClosedError": "pulsar_py.common.errors",
    "ConnectionListener": "pulsar_py.client.brokers.connection_events",
    "Consumer": "pulsar_py.client.consuming.consumer",
    "ConsumerAssignError": "pulsar_py.common.errors",
    "ConsumerBatchReceivePolicy": "pulsar_py.client.receiving.batch_receive",
    "ConsumerBusyError": "pulsar_py.common.errors",
    "ConsumerCryptoFailureAction": "pulsar_py.client.shared.enums",
    "ConsumerDeadLetterPolicy": "pulsar_py.client.consuming.dead_letter",
    "ConsumerEventListener": "pulsar_py.client.consuming.consumer_events",
    "ConsumerInterceptor": "pulsar_py.client.consuming.consumer_interceptor",
    "ConsumerKeySharedPolicy": "pulsar_py.client.consuming.key_shared_policy",
    "ConsumerNotFoundError": "pulsar_py.common.errors",
    "ConsumerOptions": "pulsar_py.client.options",
    "ConsumerOptionsWithoutSchema": "pulsar_py.client.options",
    "ConsumerStatistics": "pulsar_py.client.shared.statistics",
    "ConsumerType": "pulsar_py.client.shared.enums",
    "ControlledClusterFailover": "pulsar_py.client.brokers.cluster_failover",
    "CryptoError": "pulsar_py.common.errors",
    "CryptoKeyReader": "pulsar_py.client.security.crypto_keys",
    "CumulativeAcknowledgementNotAllowedError": "pulsar_py.common.errors",
    "EncryptionContext": "pulsar_py.client.security.message_crypto",
    "EncryptionKey": "pulsar_py.client.security.message_crypto",
    "EncryptionKeyInfo": "pulsar_py.client.security.crypto_keys",
    "ForkedProcessError": "pulsar_py.common.errors",
    "HashingScheme": "pulsar_py.client.shared.enums",
    "IncompatibleSchemaError": "pulsar_py.common.errors",
    "InitialPosition": "pulsar_py.client.shared.enums",
    "InvalidConfigurationError": "pulsar_py.common.errors",
    "InvalidMessageError": "pulsar_py.common.errors",
    "InvalidServiceUrlError": "pulsar_py.common.errors",
    "InvalidTopicNameError": "pulsar_py.common.errors",
    "InvalidTxnStatusError": "pulsar_py.common.errors",
    "KeyAnswer": "pulsar_py.client.security.crypto_keys",
    "KeyHashRange": "pulsar_py.client.consuming.key_shared_policy",
    "KeySharedMode": "pulsar_py.client.shared.enums",
    "LookupFailedError": "pulsar_py.common.errors",
    "MemoryBufferFullError": "pulsar_py.common.errors",
    "Message": "pulsar_py.client.messages.message",
    "MessageId": "pulsar_py.common.message_id",
    "MessageRouterFunction": "pulsar_py.client.producing.producer_config",
    "MessageTooBigError": "pulsar_py.common.errors",
    "MultiMessageId": "pulsar_py.client.messages.topic_message_id",
    "MultiTopicsConsumer": "pulsar_py.client.many_topics.multi_topics_consumer",
    "MultiplierRedeliveryBackoff": "pulsar_py.client.acknowledging.redelivery_backoff",
    "NotABrokerError": "pulsar_py.common.errors",
    "NotAllowedError": "pulsar_py.common.errors",
    "OperationNotSupportedError": "pulsar_py.common.errors",
    "OutgoingMessage": "pulsar_py.client.producing.message_builder",
    "PartitionedProducer": "pulsar_py.client.producing.partitioned_producer",
    "PartitionsRoutingMode": "pulsar_py.client.shared.enums",
    "PatternConsumer": "pulsar_py.client.many_topics.pattern_consumer",
    "PersistenceError": "pulsar_py.common.errors",
    "Producer": "pulsar_py.client.producing.producer",
    "ProducerAccessMode": "pulsar_py.client.shared.enums",
    "ProducerBlockedQuotaExceededError": "pulsar_py.common.errors",
    "ProducerBlockedQuotaExceededExceptionError": "pulsar_py.common.errors",
    "ProducerBusyError": "pulsar_py.common.errors",
    "ProducerCryptoFailureAction": "pulsar_py.client.shared.enums",
    "ProducerFencedError": "pulsar_py.common.errors",
    "ProducerInterceptor": "pulsar_py.client.producing.producer_interceptor",
    "ProducerOptions": "pulsar_py.client.options",
    "ProducerQueueFullError": "pulsar_py.common.errors",
    "ProducerStatistics": "pulsar_py.client.shared.statistics",
    "ProtocolError": "pulsar_py.common.errors",
    "PulsarError": "pulsar_py.common.errors",
    "Reader": "pulsar_py.client.reading.reader",
    "ReaderOptions": "pulsar_py.client.options",
    "ReceivedMessageId": "pulsar_py.client.messages.message",
    "RedeliveryBackoff": "pulsar_py.client.acknowledging.redelivery_backoff",
    "RegexSubscriptionMode": "pulsar_py.client.shared.enums",
    "RemoteProtocolError": "pulsar_py.common.errors",
    "Schema": "pulsar_py.schema.schema",
    "SchemaInfo": "pulsar_py.schema.schema_info",
    "SchemaSerializationError": "pulsar_py.common.errors",
    "SchemaType": "pulsar_py.schema.schema_info",
    "SeekTarget": "pulsar_py.client.messages.topic_message_id",
    "SendResult": "pulsar_py.client.producing.send_result",
    "ServiceError": "pulsar_py.common.errors",
    "ServiceInfo": "pulsar_py.client.brokers.cluster_failover",
    "ServiceMetadataError": "pulsar_py.common.errors",
    "ServiceNotReadyError": "pulsar_py.common.errors",
    "ServiceUrlControl": "pulsar_py.client.brokers.service_url",
    "ServiceUrlProvider": "pulsar_py.client.brokers.service_url",
    "SubscriptionMode": "pulsar_py.client.shared.enums",
    "SubscriptionNotFoundError": "pulsar_py.common.errors",
    "TableView": "pulsar_py.client.reading.table_view",
    "TableViewListener": "pulsar_py.client.reading.table_view",
    "TableViewOptions": "pulsar_py.client.options",
    "TokenSupplier": "pulsar_py.client.security.authentication",
    "TooManyRequestsError": "pulsar_py.common.errors",
    "TopicMessageId": "pulsar_py.client.messages.topic_message_id",
    "TopicNotFoundError": "pulsar_py.common.errors",
    "TopicTerminatedError": "pulsar_py.common.errors",
    "TransactionConflictError": "pulsar_py.common.errors",
    "TransactionCoordinatorNotFoundError": "pulsar_py.common.errors",
    "TransactionNotFoundError": "pulsar_py.common.errors",
    "UnknownServiceError": "pulsar_py.common.errors",
    "UnsupportedVersionError": "pulsar_py.common.errors",
    "UnusableCredentialsError": "pulsar_py.common.errors",
}


if not TYPE_CHECKING:  # a checker that sees it takes any name for one of ours

    def __getattr__(name: str) -> object:
        """Load a public name from where it lives; `__version__` from the installed package."""
        if name == "__version__":
            return import_module("importlib.metadata").version("pulsar_py")
        if name not in _HOMES:
            words = import_module("pulsar_py.client.shared.absent_names").absent_from_package(name)
            text = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(f"{text}: {words}" if words else text)
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
