"""ignored_settings: what of Pulsar's names has no effect, and why."""

from __future__ import annotations

import re
from typing import Final

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.ignored_settings import ignored_settings

OF_SECURITY: Final = re.compile(
    r"tls|ssl|auth|token|sasl|kinit|athenz|openid|oidc|kubernetes|encrypt|keystore|truststore|role"
    r"|proxy|acl|credential|secret|password|certificate|permit|trusted|anonymous|superuser",
    re.IGNORECASE,
)
"""Parts of names that speak of who may do what, and how it is proved or hidden."""

NO_PROTECTION: Final = re.compile(
    r".*(InProgress|PermitsAcquire|RateLimitPermits|PauseReceiving).*"  # parts by chance
    r"|s3ManagedLedgerOffload.*"  # nothing is offloaded: nobody is told these credentials
    r"|bookkeeperTlsCertFilesRefreshDurationSeconds"  # certificates are read each time
)
"""Names that sound like it, and why nobody relies on them."""


def test_each_has_a_reason() -> None:
    assert len(ignored_settings()) > 400
    for name, ignored in ignored_settings().items():
        assert name == ignored.name
        assert name.isidentifier(), name
        assert ignored.reason.endswith("."), name


def test_defaults_and_marks_are_read() -> None:
    threads = ignored_settings()["numHttpServerThreads"]
    assert (threads.default, threads.is_dynamic) == ("8", False)
    assert ignored_settings()["loadBalancerTransferEnabled"].is_dynamic


def test_what_asks_for_a_protection_that_is_not_there_is_refused() -> None:
    for name in ("tlsEnabled", "saslJaasClientAllowedIds", "strictAuthMethod"):
        ignored = ignored_settings()[name]
        assert not ignored.is_refused(ignored.default)
        assert not ignored.is_refused("")
        assert ignored.is_refused("true")


def test_others_are_never_refused() -> None:
    assert not ignored_settings()["numIOThreads"].is_refused("7")


@pytest.mark.parametrize("is_of_cluster", [False, True])
def test_no_security_is_asked_for_in_vain(*, is_of_cluster: bool) -> None:
    asked = [
        name
        for name in ignored_settings()
        if OF_SECURITY.search(name) and not NO_PROTECTION.fullmatch(name)
    ]
    for part in ("athenz", "kinit", "sasl", "KeyStore", "Ssl", "tlsEnabled", "bookkeeper"):
        assert any(part in name for name in asked), part
    for name in asked:
        other = "true" if ignored_settings()[name].default == "false" else "other"
        BrokerConfig.from_texts({name: ""}, is_of_cluster=is_of_cluster)
        with pytest.raises(ConfigurationError, match=f"^{name}=.*: .*\\.$"):
            BrokerConfig.from_texts({name: other}, is_of_cluster=is_of_cluster)
