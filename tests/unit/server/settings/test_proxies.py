"""settings.proxies: which lists count for which settings."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.security_parts import proxy_rules
from pulsar_py.server.settings.proxies import ProxySettings


def test_each_setting_has_the_list_for_itself() -> None:
    names = [name for name in ProxySettings.declared() if name != "trustedProxyAddresses"]
    for index, name in enumerate(names):
        texts = {name: "true", "trustedProxyAddresses": "192.0.2.0/24"}
        rules = proxy_rules(BrokerConfig.from_texts(texts))
        found = [bool(each) for each in (rules.binary, rules.http, rules.forwarded)]
        assert found == [other == index for other in range(3)]


def test_a_list_that_is_wrong_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="trustedProxyAddresses: 'x'"):
        proxy_rules(BrokerConfig.from_texts({"trustedProxyAddresses": "x"}))
