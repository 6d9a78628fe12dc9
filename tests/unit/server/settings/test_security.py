"""settings.security: what is off unless it is asked for, and how texts of files are read."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.config import BrokerConfig, is_secret


def test_nothing_is_on_by_default() -> None:
    config = BrokerConfig()
    assert not config.authenticationEnabled
    assert not config.authorizationEnabled
    assert (config.brokerServicePortTls, config.webServicePortTls) == (None, None)


def test_an_empty_port_is_none() -> None:
    config = BrokerConfig.load(overrides=["brokerServicePort=", "brokerServicePortTls=6651"])
    assert (config.brokerServicePort, config.brokerServicePortTls) == (None, 6651)


def test_versions_of_tls_that_are_not_there_are_named() -> None:
    with pytest.raises(ConfigurationError, match=r"'TLSv1' is not allowed.*TLSv1\.2, TLSv1\.3"):
        BrokerConfig.load(overrides=["tlsProtocols=TLSv1"])


def test_settings_of_tokens_with_a_prefix() -> None:
    text = "tokenSettingPrefix=my\nmytokenAuthClaim=role\ntokenAudience=ignored\n"
    config = BrokerConfig.load(properties_text=text)
    assert (config.tokenAuthClaim, config.tokenAudience) == ("role", "")
    with pytest.raises(ConfigurationError, match="mytokenAuthClaim"):
        BrokerConfig.load(properties_text="mytokenAuthClaim=role\n")


@pytest.mark.parametrize(
    "name", ["tokenSecretKey", "tlsKeyStorePassword", "tlsTrustStorePassword", "basicAuthConf"]
)
def test_secrets_are_known_as_such(name: str) -> None:
    assert is_secret(name)
