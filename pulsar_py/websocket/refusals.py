"""Chooses the HTTP status of a refused handshake by its error (pure).

A path with a name that can't be one is the client's mistake: 400, where Apache Pulsar answers 500.

Source: AbstractWebSocketHandler.getErrorCode in Pulsar.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from pulsar_py.common.errors import (
    AuthenticationError,
    AuthorizationError,
    ConsumerAssignError,
    ConsumerBusyError,
    IncompatibleSchemaError,
    InvalidConfigurationError,
    InvalidTopicNameError,
    ProducerBlockedQuotaExceededError,
    ProducerBlockedQuotaExceededExceptionError,
    ProducerBusyError,
    ProducerFencedError,
    TooManyRequestsError,
    TopicNotFoundError,
    TopicTerminatedError,
)

__all__ = ["status_of"]

_STATUSES: Final = (
    (InvalidConfigurationError, HTTPStatus.BAD_REQUEST),
    (InvalidTopicNameError, HTTPStatus.BAD_REQUEST),
    (AuthenticationError, HTTPStatus.UNAUTHORIZED),
    (AuthorizationError, HTTPStatus.FORBIDDEN),
    (TopicNotFoundError, HTTPStatus.NOT_FOUND),
    (ProducerBusyError, HTTPStatus.CONFLICT),
    (ConsumerBusyError, HTTPStatus.CONFLICT),
    (ConsumerAssignError, HTTPStatus.CONFLICT),
    (ProducerFencedError, HTTPStatus.CONFLICT),
    (IncompatibleSchemaError, HTTPStatus.CONFLICT),
    (TooManyRequestsError, HTTPStatus.TOO_MANY_REQUESTS),
    (ProducerBlockedQuotaExceededError, HTTPStatus.SERVICE_UNAVAILABLE),
    (ProducerBlockedQuotaExceededExceptionError, HTTPStatus.SERVICE_UNAVAILABLE),
    (TopicTerminatedError, HTTPStatus.SERVICE_UNAVAILABLE),
    (TimeoutError, HTTPStatus.GATEWAY_TIMEOUT),
)


def status_of(error: Exception) -> HTTPStatus:
    """The status that tells a client why it got no WebSocket."""
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return status
    return HTTPStatus.INTERNAL_SERVER_ERROR
