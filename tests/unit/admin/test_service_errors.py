"""Errors of the broker have statuses."""

from __future__ import annotations

import pytest

from pulsar_py.admin.service_errors import status_of
from pulsar_py.common import errors


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.TopicNotFoundError("x"), 404),
        (errors.TopicExistsError("x"), 409),
        (errors.TopicBusyError("x"), 412),
        (errors.InvalidNamespaceNameError("x"), 412),
        (errors.SubscriptionBusyError("x"), 412),
        (errors.TopicFencedError("x"), 503),
        (errors.NotAllowedError("x"), 405),
        (errors.MetadataBadVersionError("x"), 409),
        (errors.DiskFullError("x"), 507),
        (errors.SubscriptionUnavailableError("x"), 503),
        (errors.CursorBusyError("x"), 503),
        (errors.CursorClosedError("x"), 503),
        (errors.CursorNotFoundError("x"), 404),
        (errors.InvalidCursorPositionError("x"), 412),
        (errors.ManagedLedgerClosedError("x"), 503),
        (errors.ManagedLedgerFencedError("x"), 503),
        (errors.NotEnoughBookiesError("x"), 503),
        (errors.SessionInDoubtError("x"), 503),
        (errors.UnknownServiceError("x"), 500),
        (errors.CorruptDataError("x"), 500),
    ],
)
def test_each_error_has_its_status(error: errors.PulsarError, status: int) -> None:
    assert status_of(error) == status


def test_an_error_without_a_status_has_that_of_its_cause() -> None:
    error = errors.PersistenceError("the cursor can't be made")
    error.__cause__ = errors.ManagedLedgerClosedError("closed")
    assert status_of(error) == 503
    error.__cause__ = errors.CorruptDataError("x")
    assert status_of(error) == 500
    error.__cause__ = OSError("x")
    assert status_of(error) == 500
    known = errors.TopicNotFoundError("x")
    known.__cause__ = errors.ManagedLedgerClosedError("closed")
    assert status_of(known) == 404
