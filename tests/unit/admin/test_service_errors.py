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
        (errors.UnknownServiceError("x"), 500),
        (errors.CorruptDataError("x"), 500),
    ],
)
def test_each_error_has_its_status(error: errors.PulsarError, status: int) -> None:
    assert status_of(error) == status
