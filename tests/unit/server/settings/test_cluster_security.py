from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.settings.cluster import CLUSTER_CATEGORIES
from pulsar_py.server.settings.cluster_security import ClusterSecuritySettings


def test_all_are_off_unless_they_are_set() -> None:
    for declared in ClusterSecuritySettings.declared().values():
        assert declared.category in CLUSTER_CATEGORIES
        assert not declared.default


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("bookkeeperTLSKeyFileType=JKS", "PEM"),
        ("bookkeeperTLSTrustStorePasswordPath=/secret", "PEM"),
        ("bookkeeperTLSClientAuthentication=yes", "bookkeeperTLSClientAuthentication"),
    ],
)
def test_what_would_not_be_as_safe_as_it_says_is_refused(line: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        BrokerConfig.load(properties_text=line, is_of_cluster=True)
