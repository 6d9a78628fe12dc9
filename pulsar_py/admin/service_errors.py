"""Maps errors of the broker to HTTP statuses (pure).

Only statuses that clients act on are distinguished; a resource that needs another one raises an
`HttpError`.

Source: RestException and the handlers in AdminResource in Pulsar's broker.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from pulsar_py.common import errors

_STATUSES: Final[tuple[tuple[type[errors.PulsarError], int], ...]] = (
    # The first match counts, so subclasses come before their parents.
    (errors.InvalidTopicNameError, HTTPStatus.PRECONDITION_FAILED),
    (errors.TopicExistsError, HTTPStatus.CONFLICT),
    (errors.TopicBusyError, HTTPStatus.PRECONDITION_FAILED),
    (errors.TopicNotFoundError, HTTPStatus.NOT_FOUND),
    (errors.SubscriptionNotFoundError, HTTPStatus.NOT_FOUND),
    (errors.ConsumerNotFoundError, HTTPStatus.NOT_FOUND),
    (errors.ConsumerBusyError, HTTPStatus.PRECONDITION_FAILED),
    (errors.NamingError, HTTPStatus.PRECONDITION_FAILED),
    (errors.ProducerBusyError, HTTPStatus.PRECONDITION_FAILED),
    (errors.TooManyRequestsError, HTTPStatus.TOO_MANY_REQUESTS),
    (errors.NotAllowedError, HTTPStatus.METHOD_NOT_ALLOWED),
    (errors.AuthenticationError, HTTPStatus.UNAUTHORIZED),
    (errors.AuthorizationError, HTTPStatus.FORBIDDEN),
    (errors.IncompatibleSchemaError, HTTPStatus.CONFLICT),
    (errors.ServiceNotReadyError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.MetadataNotFoundError, HTTPStatus.NOT_FOUND),
    (errors.MetadataExistsError, HTTPStatus.CONFLICT),
    (errors.MetadataBadVersionError, HTTPStatus.CONFLICT),
    (errors.DiskFullError, HTTPStatus.INSUFFICIENT_STORAGE),
)


def status_of(error: errors.PulsarError) -> int:
    """The status for an error that a resource did not catch; 500 if it is the broker's fault."""
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return status
    return HTTPStatus.INTERNAL_SERVER_ERROR
