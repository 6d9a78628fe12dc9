"""ServerSettings: the declarations, against what Apache Pulsar 4.2.4 has."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.settings.server import ServerSettings


def test_ports_may_be_free_ones_or_none() -> None:
    assert ServerSettings(brokerServicePort=0).brokerServicePort == 0
    assert ServerSettings(webServicePort=None).webServicePort is None
    with pytest.raises(ConfigurationError, match="brokerServicePort=65536: must be at most 65535"):
        ServerSettings(brokerServicePort=65536)


def test_the_largest_message_has_javas_bound() -> None:
    assert ServerSettings.declared()["maxMessageSize"].maximum == 2**31 - 1 - 10 * 1024


def test_defaults_are_pulsars() -> None:
    settings = ServerSettings()
    assert settings.keepAliveIntervalSeconds == 30
    assert settings.connectionLivenessCheckTimeoutMillis == 5000
    assert settings.maxPendingPublishRequestsPerConnection == 1000
    assert settings.maxConcurrentLookupRequest == 50_000
    assert settings.subscriptionPatternMaxLength == 50
