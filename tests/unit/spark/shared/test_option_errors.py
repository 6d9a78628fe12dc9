"""Errors of the cluster name the option to change."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import (
    AuthenticationError,
    AuthorizationError,
    ClientTimeoutError,
    PulsarError,
    TopicNotFoundError,
)
from pulsar_py.spark.shared.option_errors import hosts, naming_options
from pulsar_py.spark.shared.options import ClientOptions

OPTIONS = ClientOptions("pulsar://me:pw@a:6650,b:6650", "http://c:8080")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ClientTimeoutError("t: last: b:6650: refused"), "service.url: t: last: b:6650: refused"),
        (ClientTimeoutError("c:8080: refused"), "admin.url: c:8080: refused"),
        (AuthenticationError("no"), "pulsar.client.authParams: no"),
        (
            AuthorizationError("not on t"),
            "the role that pulsar.client.authParams stands for: not on t",
        ),
        (TopicNotFoundError("t: gone"), "t: gone"),
    ],
)
def test_errors_name_the_option(error: PulsarError, text: str) -> None:
    with pytest.raises(type(error)) as caught, naming_options(OPTIONS):
        raise error
    assert str(caught.value) == text


def test_hosts_of_urls() -> None:
    assert hosts(OPTIONS.service_url) == ["a:6650", "b:6650"]
    assert hosts("pulsar+ssl://[::1]:6651") == ["[::1]:6651"]


def test_what_speaks_http_is_the_admin_url_though_both_name_one_port() -> None:
    both = ClientOptions("pulsar://a:6650", "http://a:6650")
    with pytest.raises(PulsarError, match=r"^admin\.url: http"), naming_options(both):
        raise ClientTimeoutError("http://a:6650/admin/v2: closed")
    with pytest.raises(PulsarError, match=r"^service\.url: t"), naming_options(both):
        raise ClientTimeoutError("t: last: a:6650: refused")
