"""Names replacements for names of other clients that this one lacks (pure).

Programs come from the official Python client, where some names are called otherwise, call back, or
block. Who asks for such a name here gets an AttributeError that says what to use, or that it is
not there. `lacks` puts a descriptor in the place of each name: a `__getattr__` would make each
access to any attribute of a producer or consumer slower by 60 ns. Type checkers see none of it: to
them the names are missing, which they are.

Source: the public classes of pulsar-client 3.13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn, TypeVar

from pulsar_py.schema.public_names import MODULES

__all__ = ["ABSENT_OPTIONS", "absent_from_package", "blocks", "lacks"]

T = TypeVar("T")

_NO_TRANSACTIONS: Final = "transactions are not there yet"

CLIENT: Final = {
    "get_service_info": "use `client.service_url`",
    "new_transaction": _NO_TRANSACTIONS,
    "new_producer": "use `await client.create_producer(topic)`",
    "new_consumer": "use `await client.subscribe(topic, subscription_name)`",
    "new_reader": "use `await client.create_reader(topic, start_message_id)`",
}
PRODUCER: Final = {
    "send_async": (
        "use `producer.send_nowait(content)`, whose result can be awaited for the id, or"
        " `await producer.send(content)`"
    ),
    "new_message": "use `await producer.send(content, key=..., properties=...)`",
}
CONSUMER: Final = {
    "receive_async": "use `await consumer.receive()`",
    "acknowledge_async": "use `await consumer.acknowledge(message)`",
    "ack": "use `await consumer.acknowledge(message)`",
    "nack": "use `consumer.negative_acknowledge(message)`",
}
READER: Final = {
    "read_next_async": "use `await reader.read_next()`",
    "receive": "use `await reader.read_next()`",
}
MESSAGE_ID: Final = {
    "partition": "use `message_id.partition_index`, without parentheses",
    "wrap": "ids need no wrapping",
}

_PACKAGE: Final = {
    "AlreadyClosed": "AlreadyClosedError",
    "BrokerMetadataError": "ServiceMetadataError",
    "BrokerPersistenceError": "PersistenceError",
    "ConsumerBusy": "ConsumerBusyError",
    "ConsumerNotFound": "ConsumerNotFoundError",
    "ConsumerNotInitialized": "AlreadyClosedError",
    "DeadLetterPolicyBuilder": "ConsumerDeadLetterPolicy",
    "KeySharedPolicy": "ConsumerKeySharedPolicy",
    "BatchReceivePolicy": "ConsumerBatchReceivePolicy",
    "ErrorGettingAuthenticationData": "AuthenticationDataError",
    "IncompatibleSchema": "IncompatibleSchemaError",
    "InvalidConfiguration": "InvalidConfigurationError",
    "InvalidMessage": "InvalidMessageError",
    "InvalidTopicName": "InvalidTopicNameError",
    "InvalidUrl": "InvalidServiceUrlError",
    "LookupError": "LookupFailedError",
    "MemoryBufferIsFull": "MemoryBufferFullError",
    "MessageTooBig": "MessageTooBigError",
    "NotConnected": "ConnectionClosedError",
    "OperationNotSupported": "OperationNotSupportedError",
    "ProducerBlockedQuotaExceededException": "ProducerBlockedQuotaExceededExceptionError",
    "ProducerBusy": "ProducerBusyError",
    "ProducerFenced": "ProducerFencedError",
    "ProducerNotInitialized": "AlreadyClosedError",
    "ProducerQueueIsFull": "ProducerQueueFullError",
    "PulsarException": "PulsarError",
    "ReadError": "ConnectionClosedError",
    "Result": "PulsarError",
    "ServiceInfoProvider": "ServiceUrlProvider",
    "ServiceUnitNotReady": "ServiceNotReadyError",
    "SubscriptionNotFound": "SubscriptionNotFoundError",
    "Timeout": "ClientTimeoutError",
    "TooManyLookupRequestException": "TooManyRequestsError",
    "TopicNotFound": "TopicNotFoundError",
    "TopicTerminated": "TopicTerminatedError",
    "TransactionConflict": "TransactionConflictError",
    "TransactionNotFound": "TransactionNotFoundError",
    "UnknownError": "UnknownServiceError",
}
"""Names of the official package, and ours."""
_NO_FUNCTIONS: Final = "Pulsar Functions are not there"
_LOGGING: Final = "logs go to Python's `logging`, below the logger `pulsar_py`"
_PACKAGE_WORDS: Final = {
    "AuthenticationAthenz": "it is not there; there are basic, token, TLS and OAuth 2.0",
    "BytesSchema": "use `pulsar_py.schema.BytesSchema`",
    "ConsoleLogger": _LOGGING,
    "FileLogger": _LOGGING,
    "LoggerLevel": _LOGGING,
    "Context": _NO_FUNCTIONS,
    "Function": _NO_FUNCTIONS,
    "IdentitySerDe": _NO_FUNCTIONS,
    "PickleSerDe": _NO_FUNCTIONS,
    "SerDe": _NO_FUNCTIONS,
    "functions": _NO_FUNCTIONS,
    "Interrupted": "calls are cancelled as in all of asyncio: catch `asyncio.CancelledError`",
    "MessageBatch": "payloads of Pulsar Functions are not there",
    "exceptions": "errors are in `pulsar_py` itself",
    "tableview": "use `pulsar_py.TableView`",
}

ABSENT_OPTIONS: Final = {
    "io_threads": "there are no threads",
    "log_conf_file_path": _LOGGING,
    "logger": _LOGGING,
    "use_tls": "a service URL with pulsar+ssl:// uses TLS",
}
"""Options of the official client that this one has no use for, and why."""


class _Absent:
    """Stands for a name that is not there."""

    def __init__(self, words: str) -> None:
        self._words = words
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no {self._name}: {self._words}")


def lacks(names: Mapping[str, str]) -> Callable[[type[T]], type[T]]:
    """Has a class say what to use instead of each of these names; `dir` does not list them."""

    def decorate(owner: type[T]) -> type[T]:
        for name, words in names.items():
            assert not hasattr(owner, name), f"{owner.__name__} has {name}"
            absent = _Absent(words)
            absent.__set_name__(owner, name)
            setattr(owner, name, absent)

        def __dir__(self: object) -> Iterable[str]:  # noqa: N807 - takes its place
            return [each for each in object.__dir__(self) if each not in names]

        setattr(owner, "__dir__", __dir__)  # noqa: B010 - unseen by type checkers
        return owner

    return decorate


def blocks(owner: type[T]) -> type[T]:
    """Has `with` on an asynchronous context manager say that it is one."""

    def __enter__(self: object) -> NoReturn:  # noqa: N807 - takes its place
        raise TypeError(
            f"`with` on a {type(self).__name__}: it is asynchronous, use `async with` in a"
            " coroutine"
        )

    def __exit__(self: object, *error: Any) -> None:  # noqa: N807 - as above. Any: never called
        del self, error

    setattr(owner, "__enter__", __enter__)  # noqa: B010 - unseen by type checkers
    setattr(owner, "__exit__", __exit__)  # noqa: B010 - as above
    return owner


def absent_from_package(name: str) -> str | None:
    """What to use instead of a name of the official package or of `pulsar_py.schema`, if it is one.

    None for any other name.
    """
    if name in _PACKAGE:
        return f"use `pulsar_py.{_PACKAGE[name]}`"
    if name in MODULES:
        return f"use `from pulsar_py.schema import {name}`"
    return _PACKAGE_WORDS.get(name)
