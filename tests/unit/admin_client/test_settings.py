"""Where the REST API is, and which error a status is."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from pulsar_py.admin_client.settings import AdminError, AdminSettings, answer_of_error, status_error
from pulsar_py.common.errors import AuthenticationError, ConfigurationError, TopicNotFoundError
from tests.certificates import Certificate


def test_hosts_share_a_scheme() -> None:
    assert AdminSettings(url="https://a, b:1").base_urls() == ["https://a", "https://b:1"]


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, AuthenticationError), (404, TopicNotFoundError), (412, AdminError)],
)
def test_an_error_has_status_and_reason(status: int, error: type[Exception]) -> None:
    found = status_error("GET /x", status, "because")
    assert type(found) is error
    assert str(found) == f"GET /x: {status} because"
    assert answer_of_error(found) == (status, "because")
    assert answer_of_error(error("another")) is None


def test_a_status_without_a_reason_is_told_by_its_name() -> None:
    error = status_error("GET /x", 401, "HTTP status 401")
    assert str(error) == "GET /x: 401 Unauthorized"
    assert answer_of_error(error) == (401, "HTTP status 401")


def test_credentials_are_not_shown() -> None:
    shown = repr(AdminSettings(url="http://a", token="secret", user="me:secret"))
    assert "secret" not in shown


def test_host_names_are_verified_unless_that_is_switched_off(tmp_path: Path) -> None:
    assert AdminSettings(url="https://a").ssl_context().check_hostname
    assert not AdminSettings(url="https://a", validates_hostname=False).ssl_context().check_hostname
    insecure = AdminSettings(url="https://a", allows_insecure_tls=True).ssl_context()
    assert insecure.verify_mode is ssl.CERT_NONE
    with pytest.raises(ConfigurationError):
        AdminSettings(url="https://a", tls_trust_certs_file=tmp_path / "none").ssl_context()


def test_a_certificate_is_presented(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        AdminSettings(url="https://a", tls_certificate_file=tmp_path / "none").ssl_context()
    own = Certificate(tmp_path, "client")
    AdminSettings(
        url="https://a", tls_certificate_file=own.certificate_path, tls_key_file=own.key_path
    ).ssl_context()
