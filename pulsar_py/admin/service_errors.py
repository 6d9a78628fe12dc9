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
    (errors.BundleSplitError, HTTPStatus.PRECONDITION_FAILED),
    (errors.TopicNotFoundError, HTTPStatus.NOT_FOUND),
    (errors.SubscriptionNotFoundError, HTTPStatus.NOT_FOUND),
    (errors.ConsumerNotFoundError, HTTPStatus.NOT_FOUND),
    (errors.ConsumerBusyError, HTTPStatus.PRECONDITION_FAILED),
    (errors.NamingError, HTTPStatus.PRECONDITION_FAILED),
    (errors.ProducerBusyError, HTTPStatus.PRECONDITION_FAILED),
    (errors.TooManyRequestsError, HTTPStatus.TOO_MANY_REQUESTS),
    (errors.CountLimitError, HTTPStatus.CONFLICT),
    (errors.NotAllowedError, HTTPStatus.METHOD_NOT_ALLOWED),
    (errors.AuthenticationError, HTTPStatus.UNAUTHORIZED),
    (errors.AuthorizationError, HTTPStatus.FORBIDDEN),
    (errors.IncompatibleSchemaError, HTTPStatus.CONFLICT),
    (errors.MetadataNotFoundError, HTTPStatus.NOT_FOUND),
    (errors.MetadataExistsError, HTTPStatus.CONFLICT),
    (errors.MetadataBadVersionError, HTTPStatus.CONFLICT),
    (errors.CursorNotFoundError, HTTPStatus.NOT_FOUND),
    (errors.InvalidCursorPositionError, HTTPStatus.PRECONDITION_FAILED),
    (errors.DiskFullError, HTTPStatus.INSUFFICIENT_STORAGE),
    (errors.UnknownListenerError, HTTPStatus.NOT_FOUND),
    # What passes: the same call may succeed later, here or at another broker.
    (errors.ServiceNotReadyError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.SubscriptionUnavailableError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.CursorBusyError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.CursorClosedError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.ManagedLedgerClosedError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.ManagedLedgerFencedError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.LedgerClosedError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.LedgerFencedError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.StoreUnavailableError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.MetadataUnavailableError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.MetadataOutcomeUnknownError, HTTPStatus.SERVICE_UNAVAILABLE),
)


def status_of(error: BaseException) -> int:
    """The status for an error that a resource did not catch; 500 if it is the broker's fault.

    An error without a status of its own, such as `PersistenceError`, has that of its cause.
    """
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return status
    if error.__cause__ is not None:
        return status_of(error.__cause__)
    return HTTPStatus.INTERNAL_SERVER_ERROR
