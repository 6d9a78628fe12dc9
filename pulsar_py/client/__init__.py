"""The asyncio client: producers, consumers, readers and table views.

In: service URLs, options and values of the application. Out: messages, message ids and errors of
`common.errors`. The public names are those of `pulsar_py` itself and are loaded on first use, so
that a program pays for what it uses; nothing of the server is loaded.

Each room may import those before it: shared, security, messages, brokers, acknowledging, producing,
receiving, consuming, many_topics, reading. But producing does without acknowledging, and receiving,
consuming and reading do without producing.

Third-party packages it may import: none. Its rooms name theirs.
"""

from __future__ import annotations

import sys
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


if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name

    def __getattr__(name: str) -> object:
        """Load a public name from the module it lives in; the package around has the table."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(sys.modules["pulsar_py"], name)


def __dir__() -> list[str]:
    return sorted(__all__)
