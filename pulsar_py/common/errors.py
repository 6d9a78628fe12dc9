"""The exceptions of the package, in one tree.

    PulsarError
    ├── ProtocolError            bytes or commands that break the protocol
    │   ├── LocalProtocolError       our own side broke it
    │   └── RemoteProtocolError      the peer broke it
    │       └── PayloadError             within one message only
    ├── ConfigurationError       a setting that is unknown or out of bounds
    ├── UnsupportedClusterError  a cluster that this broker can't join
    ├── MigrationError           what was moved elsewhere, or can't be moved
    ├── StorageError             ledgers and files
    │   ├── LedgerNotFoundError, LedgerFencedError, LedgerClosedError, EntryNotFoundError,
    │   │   EntryTooBigError, DirectoryLockedError, InstanceMismatchError
    │   ├── StoreUnavailableError        not possible now; nothing is wrong with the ledger
    │   │   ├── StoreBusyError, NotEnoughBookiesError, DiskFullError
    │   └── CorruptDataError
    │       └── FormatVersionError       whole, but written by another version
    ├── MetadataError            the metadata store
    │   ├── MetadataNotFoundError, MetadataExistsError, MetadataBadVersionError,
    │   │   MetadataNotEmptyError, MetadataTooLargeError, MetadataOutcomeUnknownError
    │   └── MetadataUnavailableError     it did not answer; nothing was changed
    │       └── SessionInDoubtError          what is owned may be somebody else's by now
    ├── ManagedLedgerError
    │   ├── ManagedLedgerFencedError, ManagedLedgerTerminatedError, ManagedLedgerClosedError,
    │   │   CursorClosedError, CursorNotFoundError, InvalidCursorPositionError, CursorBusyError
    ├── ServiceError             one class for each wire code; subclasses share their parent's
    │   ├── UnknownServiceError … ProducerFencedError (see below)
    └── ClientError              errors of the client itself, without a broker's answer
        ├── AlreadyClosedError, ForkedProcessError, ClientTimeoutError, OperationNotSupportedError
        ├── ConnectError, ConnectionClosedError, LookupFailedError, AuthenticationDataError
        │   ├── NotABrokerError              a ConnectError that waiting does not mend
        │   └── UnusableCredentialsError     an AuthenticationDataError that waiting does not mend
        ├── MessageTooBigError, ProducerQueueFullError, MemoryBufferFullError
        ├── CryptoError, SchemaSerializationError, InvalidMessageError, SinkReplayError
        └── InvalidConfigurationError    a ConfigurationError, too
            ├── InvalidServiceUrlError
            └── CumulativeAcknowledgementNotAllowedError

A class that stands for a wire code names it in its body as `code`; `SERVICE_ERRORS` maps codes to
classes and refuses a second declaration. A client raises both: a `ServiceError` is a broker's
answer, a `ClientError` is raised without one.

Source: `ServerError` in PulsarApi.proto; BrokerServiceException in Pulsar's broker.
"""

from __future__ import annotations

from typing import ClassVar, Final

from google.protobuf.message import DecodeError

from pulsar_py.proto.PulsarApi_pb2 import ServerError

UNREADABLE: Final = (DecodeError, UnicodeDecodeError)
"""What protobuf raises for bytes that are no such message. Its own Python, which is used where
there is no compiled part, raises the second for a text that is not UTF-8; upb gives bytes."""


class PulsarError(Exception):
    """The root of all errors of this package."""


class ProtocolError(PulsarError):
    """Bytes or commands that break the protocol."""


class LocalProtocolError(ProtocolError):
    """Our own side asked for something the protocol does not allow."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something the protocol does not allow; its connection has to be closed."""


class PayloadError(RemoteProtocolError):
    """A message's metadata or payload can't be read; its connection may live on."""


class ConfigurationError(PulsarError):
    """A setting is unknown, unreadable or out of bounds; the message names it and the value."""


class UnsupportedClusterError(PulsarError):
    """A cluster is in a state that this broker does not take part in; nothing was written."""


class MigrationError(PulsarError):
    """What a broker keeps was moved elsewhere, is being moved, or can't be moved so."""


class StorageError(PulsarError):
    """A ledger or file could not be read or written."""


class LedgerNotFoundError(StorageError):
    """No ledger of that id."""


class LedgerFencedError(StorageError):
    """Someone else recovered the ledger; this writer must not write any more."""


class LedgerClosedError(StorageError):
    """The ledger is closed and takes no more entries."""


class EntryNotFoundError(StorageError):
    """The ledger has no entry of that id."""


class CorruptDataError(StorageError):
    """Stored bytes fail their checksum or make no sense; the message names file and offset."""


class FormatVersionError(CorruptDataError):
    """A file has a version of its format that is not read here; nothing of it was touched."""

    def __init__(self, path: str, kind: str, found: object, ours: int) -> None:
        """`kind` says what the file is, `found` is the version it claims."""
        super().__init__(
            f"{path}: {kind} has format version {found}, this pulsar_py reads version {ours}"
        )


class EntryTooBigError(StorageError):
    """An entry is larger than the ledger store takes; the message has both sizes."""


class StoreUnavailableError(StorageError):
    """The ledger store can't do it now; nothing is wrong with the ledger, and later it may work."""


class StoreBusyError(StoreUnavailableError):
    """The ledger store's queue of unanswered requests is full; try again when some are answered."""


class NotEnoughBookiesError(StoreUnavailableError):
    """Fewer bookies answer than the ledger's quorums need; the message has both numbers."""


class DiskFullError(StoreUnavailableError):
    """The disk is full; reads still work, and writes work again once there is room."""


class InstanceMismatchError(StorageError):
    """Metadata and ledgers are not of the same instance, or one of them is missing."""


class DirectoryLockedError(StorageError):
    """Another process uses the data directory."""


class MetadataError(PulsarError):
    """The metadata store could not do what was asked."""


class MetadataNotFoundError(MetadataError):
    """The key does not exist."""


class MetadataExistsError(MetadataError):
    """The key exists already."""


class MetadataBadVersionError(MetadataError):
    """The key was changed by someone else since it was read."""


class MetadataNotEmptyError(MetadataError):
    """The key has children, and can't be deleted before them."""


class MetadataTooLargeError(MetadataError):
    """A value, or an answer, is larger than the store's limit; nothing was changed."""


class MetadataOutcomeUnknownError(MetadataError):
    """Whether the change was made is unknown: the answer is missing.

    It may yet be made, until a `sync` of the same client has returned.

    A caller that has to know reads the key afterwards, and compares value and version.
    """


class MetadataUnavailableError(MetadataError):
    """The metadata store could not be reached; nothing was changed, and a later try may succeed."""


class SessionInDoubtError(MetadataUnavailableError):
    """The session may have ended and its keys may belong to another one; nothing was changed."""


class ManagedLedgerError(PulsarError):
    """A managed ledger or cursor could not do what was asked."""


class ManagedLedgerFencedError(ManagedLedgerError):
    """Another owner has the managed ledger now; reopening does not help."""


class ManagedLedgerTerminatedError(ManagedLedgerError):
    """The managed ledger was terminated; nothing can follow."""


class ManagedLedgerClosedError(ManagedLedgerError):
    """The managed ledger is closed."""


class CursorClosedError(ManagedLedgerError):
    """The cursor is closed."""


class CursorNotFoundError(ManagedLedgerError):
    """No cursor of that name."""


class CursorBusyError(ManagedLedgerError):
    """Another reset of the cursor is under way."""


class InvalidCursorPositionError(ManagedLedgerError):
    """A position that cannot be acknowledged or read, such as one past the last entry."""


SERVICE_ERRORS: dict[int, type[ServiceError]] = {}


class ServiceError(PulsarError):
    """A request failed with a code of Pulsar's protocol.

    A subclass that names a `code` is what the broker raises to send it, and what the client raises
    when it receives it.
    """

    code: ClassVar[ServerError.ValueType] = ServerError.UnknownError

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" not in cls.__dict__:
            return
        if cls.code in SERVICE_ERRORS:
            raise TypeError(
                f"{cls.__name__} and {SERVICE_ERRORS[cls.code].__name__} "
                f"both declare code {ServerError.Name(cls.code)}"
            )
        SERVICE_ERRORS[cls.code] = cls


class UnknownServiceError(ServiceError):
    """Something failed that has no code of its own."""

    code = ServerError.UnknownError


class SubscriptionUnavailableError(UnknownServiceError):
    """The subscription is being reset or deleted, or is closed; what was asked for may be later."""


class ServiceMetadataError(ServiceError):
    """Metadata trouble, or a request whose content is invalid."""

    code = ServerError.MetadataError


class BundleSplitError(ServiceMetadataError):
    """A bundle can't be split as asked; nothing was changed."""


class PersistenceError(ServiceError):
    """A ledger could not be read or written."""

    code = ServerError.PersistenceError


class AuthenticationError(ServiceError):
    """The credentials are refused; the connection closes."""

    code = ServerError.AuthenticationError


class AuthorizationError(ServiceError):
    """The role may not do this."""

    code = ServerError.AuthorizationError


class ConsumerBusyError(ServiceError):
    """The subscription takes no such consumer now."""

    code = ServerError.ConsumerBusy


class SubscriptionBusyError(ConsumerBusyError):
    """The subscription has consumers, or is being reset or deleted."""


class ServiceNotReadyError(ServiceError):
    """The broker cannot serve this topic now; the client should look it up again."""

    code = ServerError.ServiceNotReady


class UnknownListenerError(ServiceNotReadyError):
    """A lookup names a listener that the broker does not advertise."""


class TopicFencedError(ServiceNotReadyError):
    """The topic is closing, or moving to another broker."""


class SubscriptionFencedError(ServiceNotReadyError):
    """The subscription is being reset or deleted."""


class ProducerBlockedQuotaExceededError(ServiceError):
    """Backlog quota exceeded; the client should keep trying."""

    code = ServerError.ProducerBlockedQuotaExceededError


class ProducerBlockedQuotaExceededExceptionError(ServiceError):
    """Backlog quota exceeded; the client should fail the messages that wait to be sent."""

    code = ServerError.ProducerBlockedQuotaExceededException


class ChecksumError(ServiceError):
    """The CRC32C of a published message does not match."""

    code = ServerError.ChecksumError


class UnsupportedVersionError(ServiceError):
    """The peer's protocol version does not know this feature."""

    code = ServerError.UnsupportedVersionError


class TopicNotFoundError(ServiceError):
    """No such topic, and it may not be created."""

    code = ServerError.TopicNotFound


class SubscriptionNotFoundError(ServiceError):
    """No such subscription, and it may not be created."""

    code = ServerError.SubscriptionNotFound


class ConsumerNotFoundError(ServiceError):
    """No such consumer."""

    code = ServerError.ConsumerNotFound


class TooManyRequestsError(ServiceError):
    """Too many requests of this kind are pending."""

    code = ServerError.TooManyRequests


class TopicTerminatedError(ServiceError):
    """The topic was terminated."""

    code = ServerError.TopicTerminatedError


class ProducerBusyError(ServiceError):
    """The producer's name is taken, or the topic takes no more producers."""

    code = ServerError.ProducerBusy


class NamingError(ProducerBusyError):
    """A subscription name that is empty or reserved (the wire has no other code for it)."""


class InvalidTopicNameError(ServiceError):
    """The topic name does not parse."""

    code = ServerError.InvalidTopicName


class InvalidNamespaceNameError(InvalidTopicNameError):
    """The namespace's name does not parse."""


class InvalidPathError(InvalidTopicNameError, ValueError):
    """A name would lead to another place of the metadata store, or to none."""


class TopicBusyError(ServiceError):
    """The topic has producers or consumers, and the request is allowed without them only."""


class TopicExistsError(ServiceError):
    """There is a topic of that name already."""


class IncompatibleSchemaError(ServiceError):
    """The schema is invalid, or not compatible with the topic's."""

    code = ServerError.IncompatibleSchema


class ConsumerAssignError(ServiceError):
    """The hash ranges of a Key_Shared consumer can't be assigned."""

    code = ServerError.ConsumerAssignError


class TransactionCoordinatorNotFoundError(ServiceError):
    """The transaction coordinator is not served here."""

    code = ServerError.TransactionCoordinatorNotFound


class InvalidTxnStatusError(ServiceError):
    """The transaction is in another state."""

    code = ServerError.InvalidTxnStatus


class NotAllowedError(ServiceError):
    """A feature or policy forbids this."""

    code = ServerError.NotAllowedError


class CountLimitError(NotAllowedError):
    """A topic or namespace has as many of something as a policy or setting allows."""


class TransactionConflictError(ServiceError):
    """Another transaction holds the acknowledgement."""

    code = ServerError.TransactionConflict


class TransactionNotFoundError(ServiceError):
    """No such transaction."""

    code = ServerError.TransactionNotFound


class ProducerFencedError(ServiceError):
    """An exclusive producer was refused, or lost its place."""

    code = ServerError.ProducerFenced


class ClientError(PulsarError):
    """The client could not do what was asked; no broker said so."""


class AlreadyClosedError(ClientError):
    """The client, producer, consumer or reader is closed; make a new one."""


class ForkedProcessError(ClientError):
    """The client was made in the parent process; a forked child has to make its own."""


class ClientTimeoutError(ClientError, TimeoutError):
    """An operation did not end in time; whether it still will is unknown."""


class OperationNotSupportedError(ClientError):
    """The broker's version, or this kind of topic or subscription, has no such operation."""


class ConnectError(ClientError):
    """No connection could be made: nobody listens, no such host, or the handshake failed."""


class NotABrokerError(ConnectError):
    """There is no such host, or what listens there does not speak Pulsar's protocol, or no TLS.

    Waiting does not mend it: who opens something fails at once. What was open before tries on.
    """


class ConnectionClosedError(ClientError):
    """The connection was lost, or there is none now (NotConnected); the client reconnects."""


class LookupFailedError(ClientError):
    """No broker could be found for the topic: too many redirects, or an answer without address."""


class AuthenticationDataError(ClientError):
    """The credentials could not be obtained: a file, a supplier or a token server failed."""


class UnusableCredentialsError(AuthenticationDataError):
    """There are no credentials, or a token server refuses them: waiting does not help."""


class MessageTooBigError(ClientError):
    """The message is larger than the broker takes, and chunking is off or does not apply."""


class ProducerQueueFullError(ClientError):
    """As many messages as allowed wait for their receipts already, and the producer won't block."""


class MemoryBufferFullError(ClientError):
    """The client's memory limit is reached, and the producer won't block."""


class CryptoError(ClientError):
    """A message could not be encrypted or decrypted, or a key could not be obtained."""


class SchemaSerializationError(ClientError):
    """A value does not fit its schema, or the bytes of a message do not."""


class InvalidMessageError(ClientError):
    """A message, or its id, can't be used for this: foreign, incomplete or damaged."""


class SinkReplayError(ClientError):
    """A batch that is written again differs from the first time; going on would lose rows."""


class InvalidConfigurationError(ClientError, ConfigurationError):
    """An option is unknown or out of bounds; the message names it, its value and the bound."""


class InvalidServiceUrlError(InvalidConfigurationError):
    """The service URL can't be read."""


class CumulativeAcknowledgementNotAllowedError(InvalidConfigurationError):
    """Shared and Key_Shared subscriptions acknowledge one by one."""


def service_error(code: int, message: str) -> ServiceError:
    """The exception for an error code that came over the wire; unknown codes are possible."""
    return SERVICE_ERRORS.get(code, UnknownServiceError)(message)
