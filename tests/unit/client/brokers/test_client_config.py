"""A client's options and their bounds."""

from __future__ import annotations

import pytest

from pulsar_py.client.brokers.client_config import ClientConfig
from pulsar_py.common.errors import InvalidConfigurationError


def test_defaults_are_those_of_the_official_clients() -> None:
    config = ClientConfig()

    assert config.operation_timeout_seconds == 30
    assert config.connection_timeout_ms == 10_000
    assert config.concurrent_lookup_requests == 50_000
    assert config.stats_interval_in_seconds == 600
    assert config.memory_limit_bytes == 64 * 1024 * 1024
    assert config.connections_per_broker == 1


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("operation_timeout_seconds", 0),
        ("operation_timeout_seconds", float("nan")),
        ("operation_timeout_seconds", "30"),
        ("connections_per_broker", 0),
        ("connections_per_broker", True),
        ("memory_limit_bytes", -1),
        ("stats_interval_in_seconds", -1),
        ("concurrent_lookup_requests", 0),
        ("connection_timeout_ms", 0),
    ],
)
def test_what_is_out_of_bounds_is_named_with_its_value(option: str, value: object) -> None:
    with pytest.raises(InvalidConfigurationError, match=f"{option}="):
        ClientConfig(**{option: value})


def test_options_that_belong_together_are_checked_together() -> None:
    with pytest.raises(InvalidConfigurationError, match="max_backoff_interval_ms=10"):
        ClientConfig(max_backoff_interval_ms=10)
    with pytest.raises(InvalidConfigurationError, match="tls_private_key_file_path='k'"):
        ClientConfig(tls_private_key_file_path="k")


def test_the_options_of_tls_stand_together() -> None:
    tls = ClientConfig(tls_trust_certs_file_path="ca.pem", tls_validate_hostname=True).tls

    assert tls.tls_trust_certs_file_path == "ca.pem"
    assert tls.tls_validate_hostname
    assert not tls.tls_allow_insecure_connection
