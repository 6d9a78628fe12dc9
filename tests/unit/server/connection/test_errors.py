from __future__ import annotations

import pytest

from pulsar_py.common import errors
from pulsar_py.server.connection.errors import is_expected, to_service_error


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (errors.MetadataBadVersionError("x"), errors.ServiceMetadataError),
        (errors.DiskFullError("x"), errors.PersistenceError),
        (errors.ManagedLedgerFencedError("x"), errors.ServiceNotReadyError),
        (errors.ManagedLedgerTerminatedError("x"), errors.TopicTerminatedError),
        (errors.CursorBusyError("x"), errors.ConsumerBusyError),
        (errors.CursorClosedError("x"), errors.PersistenceError),
        (errors.InvalidCursorPositionError("x"), errors.UnknownServiceError),
        (ZeroDivisionError("x"), errors.UnknownServiceError),
    ],
)
def test_causes_have_the_code_pulsar_gives_them(
    error: Exception, answer: type[errors.ServiceError]
) -> None:
    found = to_service_error(error)
    assert isinstance(found, answer)
    assert found.code == answer.code
    assert "x" in str(found)


def test_errors_with_a_code_stay_themselves() -> None:
    error = errors.SubscriptionFencedError("x")
    assert to_service_error(error) is error


def test_only_our_own_errors_are_part_of_normal_life() -> None:
    assert is_expected(errors.StorageError("x"))
    assert not is_expected(KeyError("x"))
