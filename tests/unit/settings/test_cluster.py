"""Settings of ZooKeeper and BookKeeper, as their clients are given them."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from pulsar_py.bookkeeper.bookies.health import QuarantineSettings
from pulsar_py.bookkeeper.placement.isolation import IsolationGroups
from pulsar_py.bookkeeper.placement.placement import PlacementSettings
from pulsar_py.cli.broker import (
    check_cluster_settings,
    ledger_options,
    store_settings,
    watch_session,
)
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.network.tls import TlsOptions
from pulsar_py.ledgers.store import DigestType
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.settings.cluster import LedgerDigest, SessionExpiredPolicy
from pulsar_py.testing.clock import VirtualClock, run_virtual
from pulsar_py.testing.hostile_metadata import HostileMetadata
from pulsar_py.zookeeper.messages import CREATOR_ALL_ACL
from tests.certificates import Certificate


@pytest.mark.setting(
    "metadataStoreUrl", "configurationMetadataStoreUrl", "bookkeeperMetadataServiceUri"
)
def test_addresses_are_those_of_the_clients() -> None:
    config = BrokerConfig(
        metadataStoreUrl="zk:a:1",
        configurationMetadataStoreUrl="zk:b:2",
        bookkeeperMetadataServiceUri="zk+hierarchical://c:3/bk",
    )
    addresses = store_settings(config).addresses
    assert str(addresses.local) == "zk:a:1"
    assert str(addresses.configuration) == "zk:b:2"
    assert (str(addresses.bookkeeper), addresses.ledgers_root) == ("zk:c:3", "/bk")


@pytest.mark.setting(
    "metadataStoreSessionTimeoutMillis",
    "metadataStoreOperationTimeoutSeconds",
    "bookkeeperClientTimeoutInSeconds",
)
def test_time_outs_are_those_of_the_clients() -> None:
    settings = store_settings(
        BrokerConfig(
            metadataStoreUrl="a",
            metadataStoreSessionTimeoutMillis=7000,
            metadataStoreOperationTimeoutSeconds=8,
            bookkeeperClientTimeoutInSeconds=9,
        )
    )
    assert settings.zookeeper.session_timeout_millis == 7000
    assert settings.zookeeper.operation_timeout_seconds == 8
    assert settings.bookkeeper.limits.answer_timeout_seconds == 9


@pytest.mark.setting(
    "metadataStoreBatchingEnabled",
    "metadataStoreBatchingMaxOperations",
    "metadataStoreBatchingMaxSizeKb",
)
def test_changes_are_gathered_as_the_settings_say() -> None:
    def gathered(*, is_enabled: bool) -> tuple[int, int]:
        config = BrokerConfig(
            metadataStoreUrl="a",
            metadataStoreBatchingEnabled=is_enabled,
            metadataStoreBatchingMaxOperations=7,
            metadataStoreBatchingMaxSizeKb=3,
        )
        settings = store_settings(config).zookeeper
        return settings.max_batch_count, settings.max_batch_bytes

    assert gathered(is_enabled=True) == (7, 3072)
    assert gathered(is_enabled=False)[0] == 1


@pytest.mark.setting(
    "managedLedgerDefaultEnsembleSize",
    "managedLedgerDefaultWriteQuorum",
    "managedLedgerDefaultAckQuorum",
    "managedLedgerDigestType",
    "managedLedgerPassword",
)
def test_new_ledgers_are_as_the_settings_say() -> None:
    options = ledger_options(
        BrokerConfig(
            managedLedgerDefaultEnsembleSize=5,
            managedLedgerDefaultWriteQuorum=4,
            managedLedgerDefaultAckQuorum=3,
            managedLedgerDigestType=LedgerDigest.MAC,
            managedLedgerPassword="secret",
        )
    )
    sizes = (options.ensemble_size, options.write_quorum_size, options.ack_quorum_size)
    assert sizes == (5, 4, 3)
    assert (options.digest_type, options.password) == (DigestType.HMAC, b"secret")


@pytest.mark.setting(
    "bookkeeperClientRackawarePolicyEnabled",
    "bookkeeperClientRegionawarePolicyEnabled",
    "bookkeeperClientMinNumRacksPerWriteQuorum",
    "bookkeeperClientEnforceMinNumRacksPerWriteQuorum",
    "bookkeeperClientIsolationGroups",
    "bookkeeperClientSecondaryIsolationGroups",
    "bookkeeperClientReorderReadSequenceEnabled",
)
def test_bookies_are_chosen_as_the_settings_say() -> None:
    settings = store_settings(
        BrokerConfig(
            metadataStoreUrl="a",
            bookkeeperClientRackawarePolicyEnabled=False,
            bookkeeperClientRegionawarePolicyEnabled=True,
            bookkeeperClientMinNumRacksPerWriteQuorum=3,
            bookkeeperClientEnforceMinNumRacksPerWriteQuorum=True,
            bookkeeperClientIsolationGroups="fast, near",
            bookkeeperClientSecondaryIsolationGroups="slow",
            bookkeeperClientReorderReadSequenceEnabled=False,
        )
    )
    assert settings.bookkeeper.placement == PlacementSettings(
        is_rack_aware=False,
        is_region_aware=True,
        min_racks_per_write_quorum=3,
        enforces_min_racks=True,
        isolation=IsolationGroups(primary=("fast", "near"), secondary=("slow",)),
        reorders_reads=False,
    )


@pytest.mark.setting(
    "bookkeeperClientHealthCheckEnabled",
    "bookkeeperClientHealthCheckIntervalSeconds",
    "bookkeeperClientHealthCheckErrorThresholdPerInterval",
    "bookkeeperClientHealthCheckQuarantineTimeInSeconds",
)
def test_bookies_are_avoided_as_the_settings_say() -> None:
    settings = store_settings(
        BrokerConfig(
            metadataStoreUrl="a",
            bookkeeperClientHealthCheckEnabled=False,
            bookkeeperClientHealthCheckIntervalSeconds=7,
            bookkeeperClientHealthCheckErrorThresholdPerInterval=8,
            bookkeeperClientHealthCheckQuarantineTimeInSeconds=9,
        )
    )
    assert settings.bookkeeper.quarantine == QuarantineSettings(
        is_enabled=False,
        interval_seconds=7,
        error_threshold_per_interval=8,
        quarantine_seconds=9,
    )


@pytest.mark.setting(
    "bookkeeperClientSpeculativeReadTimeoutInMillis",
    "bookkeeperEnableStickyReads",
    "bookkeeperExplicitLacIntervalInMills",
)
def test_entries_are_read_as_the_settings_say() -> None:
    settings = store_settings(
        BrokerConfig(
            metadataStoreUrl="a",
            bookkeeperClientSpeculativeReadTimeoutInMillis=2500,
            bookkeeperEnableStickyReads=False,
            bookkeeperExplicitLacIntervalInMills=1500,
        )
    ).bookkeeper
    assert settings.speculative_read_timeout_seconds == 2.5
    assert not settings.has_sticky_reads
    assert settings.explicit_lac_interval_seconds == 1.5


@pytest.mark.setting(
    "managedLedgerMaxEnsembleSize", "managedLedgerMaxWriteQuorum", "managedLedgerMaxAckQuorum"
)
def test_no_ledger_is_larger_than_the_settings_allow() -> None:
    config = BrokerConfig(
        metadataStoreUrl="a",
        managedLedgerMaxEnsembleSize=9,
        managedLedgerMaxWriteQuorum=8,
        managedLedgerMaxAckQuorum=7,
    )
    largest = store_settings(config).largest
    sizes = (largest.ensemble_size, largest.write_quorum_size, largest.ack_quorum_size)
    assert sizes == (9, 8, 7)


@pytest.mark.setting("zookeeperSessionExpiredPolicy")
def test_a_broker_ends_with_its_session_where_the_policy_says_so() -> None:
    async def told_of_the_end(policy: SessionExpiredPolicy) -> list[str]:
        told: list[str] = []
        client = HostileMetadata(random.Random(3), VirtualClock()).connect("b", VirtualClock())
        config = BrokerConfig(zookeeperSessionExpiredPolicy=policy)
        await watch_session(config, client, lambda: told.append("over"))
        client.cut(1)
        await asyncio.sleep(2)
        assert not told
        client.expire()
        await asyncio.sleep(60)
        return told

    assert run_virtual(told_of_the_end(SessionExpiredPolicy.SHUTDOWN)) == ["over"]
    assert run_virtual(told_of_the_end(SessionExpiredPolicy.RECONNECT)) == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"clusterName": ""}, "clusterName is not set"),
        ({"managedLedgerDefaultAckQuorum": 3}, "managedLedgerDefaultAckQuorum=3 must be at most"),
        ({"managedLedgerDefaultWriteQuorum": 3}, "managedLedgerDefaultWriteQuorum=3"),
        (
            {"managedLedgerDefaultEnsembleSize": 6},
            "managedLedgerDefaultEnsembleSize=6 is more than managedLedgerMaxEnsembleSize=5",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    values: dict[str, object], words: str
) -> None:
    check_cluster_settings(BrokerConfig(clusterName="c"))
    with pytest.raises(ConfigurationError, match=words):
        check_cluster_settings(BrokerConfig(**{"clusterName": "c", **values}))


def test_a_cluster_has_to_be_named() -> None:
    with pytest.raises(ConfigurationError, match="clusterName is not set"):
        check_cluster_settings(BrokerConfig())


@pytest.mark.setting("metadataStoreConfigPath", "configurationStoreConfigPath", "zkEnableSecurity")
def test_each_zookeeper_has_its_own_file_of_properties(tmp_path: Path) -> None:
    local, shared = tmp_path / "local", tmp_path / "shared"
    local.write_text("jute.maxbuffer=1000\n")
    shared.write_text("jute.maxbuffer=2000\n")
    settings = store_settings(
        BrokerConfig(
            metadataStoreUrl="a",
            metadataStoreConfigPath=str(local),
            configurationStoreConfigPath=str(shared),
            zkEnableSecurity=True,
        )
    )
    configuration = settings.configuration_zookeeper
    assert configuration is not None
    assert settings.zookeeper.max_request_bytes == 1000
    assert configuration.max_request_bytes == 2000
    assert settings.zookeeper.acls == configuration.acls == CREATOR_ALL_ACL


@pytest.mark.setting(
    "bookkeeperTLSClientAuthentication",
    "bookkeeperTLSTrustCertsFilePath",
    "bookkeeperTLSCertificateFilePath",
    "bookkeeperTLSKeyFilePath",
    "bookkeeper_tlsHostnameVerificationEnabled",
)
def test_tls_to_bookies_is_that_of_the_files(tmp_path: Path) -> None:
    own = Certificate(tmp_path, "own", host="localhost")
    trusted = Certificate(tmp_path, "trusted", host="localhost")
    settings = store_settings(
        BrokerConfig(
            metadataStoreUrl="a",
            bookkeeperTLSClientAuthentication=True,
            bookkeeperTLSTrustCertsFilePath=trusted.certificate_path,
            bookkeeperTLSCertificateFilePath=own.certificate_path,
            bookkeeperTLSKeyFilePath=own.key_path,
            bookkeeper_tlsHostnameVerificationEnabled=True,
        )
    )
    assert settings.bookkeeper.connection.tls == TlsOptions(
        tls_trust_certs_file_path=trusted.certificate_path,
        tls_certificate_file_path=own.certificate_path,
        tls_private_key_file_path=own.key_path,
        tls_validate_hostname=True,
    )
