"""Decides which errors are worth another attempt, and repeats attempts within a time limit.

`is_retriable` decides as long as an operation has not succeeded. A producer or consumer that was
open once reconnects after nearly all errors; only those of `FATAL_ONCE_OPEN` end it.

Source: PulsarClientException.isRetriableError, ProducerImpl and ConsumerImpl in Pulsar's client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final, TypeVar

from pulsar_py.common.backoff import Backoff
from pulsar_py.common.errors import (
    AlreadyClosedError,
    AuthenticationError,
    AuthorizationError,
    ChecksumError,
    ClientError,
    ClientTimeoutError,
    ConsumerAssignError,
    ConsumerBusyError,
    CryptoError,
    ForkedProcessError,
    IncompatibleSchemaError,
    InvalidConfigurationError,
    InvalidTopicNameError,
    NotABrokerError,
    NotAllowedError,
    OperationNotSupportedError,
    ProducerBlockedQuotaExceededExceptionError,
    ProducerBusyError,
    ProducerFencedError,
    PulsarError,
    SchemaSerializationError,
    ServiceError,
    ServiceMetadataError,
    SubscriptionNotFoundError,
    TopicNotFoundError,
    TopicTerminatedError,
    UnsupportedVersionError,
    UnusableCredentialsError,
)
from pulsar_py.common.loops.clock import Clock

__all__ = ["FATAL_ONCE_OPEN", "is_retriable", "repeat", "tried_text", "within"]

T = TypeVar("T")

_NOT_RETRIABLE: Final = (
    AlreadyClosedError,
    AuthenticationError,
    AuthorizationError,
    ChecksumError,
    ConsumerAssignError,
    ConsumerBusyError,
    CryptoError,
    ForkedProcessError,
    IncompatibleSchemaError,
    InvalidConfigurationError,
    InvalidTopicNameError,
    NotABrokerError,
    NotAllowedError,
    OperationNotSupportedError,
    ProducerBlockedQuotaExceededExceptionError,
    ProducerBusyError,
    ProducerFencedError,
    SchemaSerializationError,
    SubscriptionNotFoundError,
    TopicNotFoundError,
    TopicTerminatedError,
    UnsupportedVersionError,
    UnusableCredentialsError,
)

FATAL_ONCE_OPEN: Final[tuple[type[Exception], ...]] = (
    AlreadyClosedError,
    ForkedProcessError,
    ProducerFencedError,
    TopicTerminatedError,
)
"""Errors that end a producer or consumer that was open before."""


_NEEDS_ENCRYPTION: Final = "Encryption is required in "
"""In a broker's MetadataError: the producer does not encrypt, and will not by waiting."""


def is_retriable(error: BaseException) -> bool:
    """Whether the same may succeed a little later."""
    if isinstance(error, ServiceMetadataError) and _NEEDS_ENCRYPTION in str(error):
        return False
    return isinstance(error, PulsarError) and not isinstance(error, _NOT_RETRIABLE)


async def within(work: Awaitable[T], seconds: float, text: str) -> T:
    """Await `work` for at most `seconds`; returns its result.

    Raises:
        ClientTimeoutError: It took longer, and was cancelled; the message begins with `text`.
    """
    try:
        async with asyncio.timeout(max(seconds, 0)) as limit:
            return await work
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise ClientTimeoutError(f"{text}: not done in {seconds:g} s") from error


async def repeat(
    attempt: Callable[[float], Awaitable[T]],
    *,
    clock: Clock,
    chance: Random,
    timeout_seconds: float,
    subject: str,
    initial_seconds: float = 0.1,
    maximum_seconds: float = 60.0,
) -> T:
    """Call `attempt` until it succeeds; it gets the seconds that it may take. Returns its result.

    Raises:
        ClientTimeoutError: The time is over; the last attempt's error is its cause.
        ServiceError, ClientError: The error of an attempt that is not worth repeating.
    """
    backoff = Backoff(chance, initial_seconds=initial_seconds, maximum_seconds=maximum_seconds)
    begin = clock.monotonic_seconds()
    deadline = begin + timeout_seconds
    previous: PulsarError | None = None
    while True:
        left = deadline - clock.monotonic_seconds()
        try:
            return await within(attempt(left), left, subject)
        except (ServiceError, ClientError, PulsarError) as error:
            now = clock.monotonic_seconds()
            delay = backoff.next_delay(now)
            if isinstance(error, NotABrokerError):
                raise NotABrokerError(f"{subject}: {error}") from error
            if not is_retriable(error):
                raise
            if previous is not None and now >= deadline and isinstance(error, ClientTimeoutError):
                # The last attempt was cut short: its time-out tells less than the error before.
                raise ClientTimeoutError(
                    f"{subject}: no answer in {timeout_seconds:g} s, last: {previous}"
                ) from previous
            if now + delay >= deadline:
                raise _over(error, subject, now - begin, timeout_seconds) from error
            previous = error
        await clock.sleep(delay)


def _over(
    error: PulsarError, subject: str, tried_seconds: float, timeout_seconds: float
) -> PulsarError:
    """The last error if a broker answered with it, else a ClientTimeoutError with its text."""
    if isinstance(error, ServiceError | ClientTimeoutError):
        return error
    tried = tried_text(tried_seconds, timeout_seconds)
    return ClientTimeoutError(f"{subject}: no answer in {tried}, last: {error}")


def tried_text(tried_seconds: float, timeout_seconds: float) -> str:
    """How long attempts went on, as text for the error after the time-out."""
    return f"{tried_seconds:.1f} s, gave up (operation time-out {timeout_seconds:g} s)"
