"""Options of TLS with a URL that has none."""

from typing import Any

import pytest

from pulsar_py.client.client import Client
from pulsar_py.client.security.authentication import Authentication, AuthenticationTLS


@pytest.mark.parametrize(
    ("authentication", "options", "named"),
    [
        (None, {"tls_validate_hostname": True}, "tls_validate_hostname"),
        (AuthenticationTLS("c.pem", "k.pem"), {}, "AuthenticationTLS"),
    ],
)
def test_they_are_named_in_one_warning(
    authentication: Authentication | None,
    options: dict[str, Any],
    named: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    Client("pulsar://localhost", authentication, **options)
    (text,) = [each.getMessage() for each in caplog.records]
    assert text == (
        f"pulsar://localhost:6650 is not encrypted, so {named} has no effect: use pulsar+ssl://"
    )


def test_nothing_is_said_where_they_are_used_or_not_given(caplog: pytest.LogCaptureFixture) -> None:
    Client("pulsar://localhost")
    Client("pulsar+ssl://localhost", tls_validate_hostname=True)
    assert not caplog.records
