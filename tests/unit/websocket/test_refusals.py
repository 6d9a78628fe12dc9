"""Which error of an opening is which status of a handshake."""

from __future__ import annotations

import pytest

from pulsar_py.common import errors
from pulsar_py.websocket.refusals import status_of


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.InvalidConfigurationError, 400),
        (errors.AuthenticationError, 401),
        (errors.AuthorizationError, 403),
        (errors.TopicNotFoundError, 404),
        (errors.ConsumerBusyError, 409),
        (errors.SubscriptionBusyError, 409),
        (errors.ProducerBusyError, 409),
        (errors.ProducerFencedError, 409),
        (errors.IncompatibleSchemaError, 409),
        (errors.TooManyRequestsError, 429),
        (errors.InvalidTopicNameError, 400),
        (errors.InvalidNamespaceNameError, 400),
        (errors.InvalidPathError, 400),
        (errors.CryptoError, 500),
        (errors.ProducerBlockedQuotaExceededError, 503),
        (errors.ProducerBlockedQuotaExceededExceptionError, 503),
        (errors.TopicTerminatedError, 503),
        (errors.ClientTimeoutError, 504),
    ],
)
def test_an_error_has_its_status(error: type[Exception], status: int) -> None:
    assert status_of(error("x")) == status
