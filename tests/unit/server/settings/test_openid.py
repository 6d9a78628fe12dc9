"""settings.openid: names, defaults and bounds."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.authentication_parts import openid_settings
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.settings.openid import OpenIdConnectSettings


@pytest.mark.setting(
    "openIDCacheSize",
    "openIDCacheRefreshAfterWriteSeconds",
    "openIDHttpConnectionTimeoutMillis",
    "openIDHttpReadTimeoutMillis",
)
def test_every_setting_reaches_the_provider() -> None:
    others = {"openIDCacheSize": "7", "openIDRequireIssuersUseHttps": "false"}
    refused_by_all = {"openIDFallbackDiscoveryMode"}
    for name, declared in OpenIdConnectSettings.declared().items():
        if name in refused_by_all:
            continue
        text = others.get(name, "12345" if isinstance(declared.default, int) else "other")
        changed = openid_settings(BrokerConfig.from_texts({name: text}))
        assert changed != openid_settings(BrokerConfig()), name


@pytest.mark.parametrize("name", ["openIDCacheSize", "openIDHttpReadTimeoutMillis"])
def test_bounds(name: str) -> None:
    with pytest.raises(ConfigurationError, match="at least 1"):
        BrokerConfig.from_texts({name: "0"})
