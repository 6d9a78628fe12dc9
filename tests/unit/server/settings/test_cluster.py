"""settings.cluster, and what a broker of a cluster refuses of Pulsar's other settings."""

from __future__ import annotations

import logging

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.ledgers.store import DigestType
from pulsar_py.server.config import RENAMED, BrokerConfig
from pulsar_py.server.ignored_settings import ignored_settings
from pulsar_py.server.settings.cluster import CLUSTER_CATEGORIES, LedgerDigest
from pulsar_py.server.settings.storage import BOOKIE

WORDS = ("bookkeeper", "zookeeper", "metadatastore", "metadatasync", "configurationstore")
OTHERS = {
    "loadManagerClassName",
    "managedLedgerDefaultAckQuorum",
    "managedLedgerDefaultEnsembleSize",
    "managedLedgerDefaultWriteQuorum",
    "managedLedgerDigestType",
    "managedLedgerMaxAckQuorum",
    "managedLedgerMaxEnsembleSize",
    "managedLedgerMaxWriteQuorum",
    "managedLedgerPassword",
    "strictBookieAffinityEnabled",
}
ELSEWHERE = {
    "managedLedgerMaxUnackedRangesToPersistInMetadataStore",  # of cursors
    "packagesManagementStorageProvider",
    "schemaRegistryStorageClassName",
    "transactionMetadataStoreProviderClassName",
}


def of_the_clients() -> list[str]:
    """Names of all settings of Pulsar's broker that concern its BookKeeper and ZooKeeper."""
    names = {*BrokerConfig.declared(), *ignored_settings(), *RENAMED}
    found = {name for name in names if any(word in name.lower() for word in WORDS)}
    return sorted((found | OTHERS) - ELSEWHERE - RENAMED.keys())


def test_there_are_as_many_as_the_table_says() -> None:
    assert len(of_the_clients()) > 60
    assert {name for name, each in ignored_settings().items() if each.is_of_cluster} <= {
        *of_the_clients()
    }


@pytest.mark.parametrize("name", of_the_clients())
def test_each_has_an_effect_or_refuses_any_value_but_the_default(name: str) -> None:
    declared = BrokerConfig.declared().get(name)
    if declared is not None:
        assert declared.category in CLUSTER_CATEGORIES
        return
    ignored = ignored_settings()[name]
    assert ignored.is_of_cluster or ignored.is_protection
    load(f"{name}=")
    load(f"{name}={ignored.default}")
    other = {"true": "false", "false": "true"}.get(ignored.default, f"{ignored.default}7")
    with pytest.raises(ConfigurationError) as caught:
        load(f"{name}={other}")
    shown = "…" if BrokerConfig.is_secret(name) else other
    assert str(caught.value) == f"{name}={shown}: {ignored.reason}"
    assert ignored.reason.count(".") == 1


def load(*overrides: str) -> BrokerConfig:
    return BrokerConfig.load(overrides=overrides, is_of_cluster=True)


def protections() -> set[str]:
    """Names of the settings that protect a connection, which each broker refuses."""
    return {name for name, each in ignored_settings().items() if each.is_protection}


@pytest.mark.parametrize("name", sorted(protections().intersection(of_the_clients())))
def test_a_standalone_broker_refuses_what_would_protect(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name}="):
        BrokerConfig.load(overrides=[f"{name}=7"])


@pytest.mark.parametrize("name", sorted({*of_the_clients()} - protections()))
def test_a_standalone_broker_takes_every_other(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    declared = BrokerConfig.declared().get(name)
    text = "7"
    if declared is not None and isinstance(declared.default, LedgerDigest):
        text = "MAC"
    elif declared is not None and isinstance(declared.default, bool):
        text = str(not declared.default).lower()
    elif name == "zookeeperSessionExpiredPolicy":
        text = "shutdown"
    BrokerConfig.load(overrides=[f"{name}={text}"])
    noticed = [each.__dict__["setting"] for each in caplog.records]
    assert noticed == [name]


def test_settings_of_the_bookie_within_are_noticed_in_a_cluster(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    assert BrokerConfig.declared()["journalMaxSizeMB"].category == BOOKIE
    load("journalMaxSizeMB=7")
    assert [each.__dict__["setting"] for each in caplog.records] == ["journalMaxSizeMB"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("zookeeperServers", "metadataStoreUrl"),
        ("configurationStoreServers", "configurationMetadataStoreUrl"),
        ("globalZookeeperServers", "configurationMetadataStoreUrl"),
    ],
)
def test_old_names_of_the_addresses_are_taken(old: str, new: str) -> None:
    assert getattr(load(f"{old}=h:2181"), new) == "h:2181"


def test_old_names_of_the_time_outs_are_taken() -> None:
    config = load("zooKeeperSessionTimeoutMillis=7000", "zooKeeperOperationTimeoutSeconds=8")
    assert config.metadataStoreSessionTimeoutMillis == 7000
    assert config.metadataStoreOperationTimeoutSeconds == 8


@pytest.mark.parametrize(
    ("name", "digest_type"),
    [("CRC32", DigestType.CRC32), ("MAC", DigestType.HMAC), ("CRC32C", DigestType.CRC32C)],
)
def test_digests_have_bookkeepers_names(name: str, digest_type: DigestType) -> None:
    digest = load(f"managedLedgerDigestType={name}").managedLedgerDigestType
    assert digest.digest_type is digest_type


def test_an_unknown_digest_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="expected one of CRC32, MAC, CRC32C, DUMMY"):
        load("managedLedgerDigestType=MD5")
