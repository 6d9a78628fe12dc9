"""Translates errors of serving a command into errors of the protocol (pure).

Source: BrokerServiceException.getClientErrorCode in Pulsar's broker.
"""

from __future__ import annotations

from pulsar_py.common.errors import (
    CursorBusyError,
    InvalidCursorPositionError,
    ManagedLedgerClosedError,
    ManagedLedgerError,
    ManagedLedgerFencedError,
    ManagedLedgerTerminatedError,
    MetadataError,
    PersistenceError,
    PulsarError,
    ServiceError,
    ServiceMetadataError,
    ServiceNotReadyError,
    StorageError,
    SubscriptionBusyError,
    TopicTerminatedError,
    UnknownServiceError,
)

_BY_CAUSE: tuple[tuple[type[PulsarError], type[ServiceError]], ...] = (
    (MetadataError, ServiceMetadataError),
    (StorageError, PersistenceError),
    (ManagedLedgerFencedError, ServiceNotReadyError),
    (ManagedLedgerClosedError, ServiceNotReadyError),
    (ManagedLedgerTerminatedError, TopicTerminatedError),
    (CursorBusyError, SubscriptionBusyError),
    (InvalidCursorPositionError, UnknownServiceError),
    (ManagedLedgerError, PersistenceError),
)


def to_service_error(error: BaseException) -> ServiceError:
    """The error with a wire code to answer with; `error` itself if it has one."""
    if isinstance(error, ServiceError):
        return error
    for cause, service_error in _BY_CAUSE:
        if isinstance(error, cause):
            return service_error(str(error))
    return UnknownServiceError(f"the broker failed, its log has the details: {error}")


def is_expected(error: BaseException) -> bool:
    """Whether the error can occur without a fault in this broker's code."""
    return isinstance(error, PulsarError)
