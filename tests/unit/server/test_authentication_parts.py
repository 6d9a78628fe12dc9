"""authentication_parts: the methods of authentication that the settings name."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.server.authentication_parts import (
    authentication_settings,
    configured_authenticators,
)
from pulsar_py.server.config import BrokerConfig


def test_what_is_revoked_counts_for_both_kinds_of_tokens() -> None:
    found = authentication_settings(BrokerConfig.from_texts({"tokenRevocationFile": "/revoked"}))
    assert found.token.revocation_file == found.openid.revocation_file == "/revoked"


def test_the_settings_name_the_methods() -> None:
    named = {"authenticationEnabled": "true", "authenticationProviders": "tls"}
    found = configured_authenticators(BrokerConfig.from_texts(named), SystemClock())
    assert list(found.providers) == ["tls"]


def test_authentication_needs_a_method() -> None:
    config = BrokerConfig.from_texts({"authenticationEnabled": "true"})
    with pytest.raises(ConfigurationError, match="needs authenticationProviders"):
        configured_authenticators(config, SystemClock())
