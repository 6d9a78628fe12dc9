"""The work of `pulsar-py broker`: runs a broker on ZooKeeper and BookKeeper (edge).

Ready line, logs, signals and exit codes are those of `pulsar-py standalone`. Nothing is kept in
this process or its directory: another broker with the same settings goes on where it ended.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from pulsar_py.bookkeeper.bookies.health import QuarantineSettings
from pulsar_py.bookkeeper.cluster.settings import MEBIBYTE
from pulsar_py.bookkeeper.placement.isolation import IsolationGroups
from pulsar_py.bookkeeper.placement.placement import PlacementSettings
from pulsar_py.cli.security.cluster_security import bookie_tls, zookeeper_client
from pulsar_py.cli.standalone import (
    OpenPorts,
    load_settings,
    reach_of,
    ready_json,
    run_to_the_end,
    set_up_logging,
    signals_to_event,
    with_ports,
)
from pulsar_py.cli.supervision import supervised
from pulsar_py.cluster_stores import (
    ClusterAddresses,
    ClusterLedgers,
    ClusterMetadata,
    ClusterStores,
    ClusterStoreSettings,
    LargestQuorums,
)
from pulsar_py.common.errors import ConfigurationError, PulsarError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.metadata.store import MetadataStore, SessionEvent
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.settings.cluster import SessionExpiredPolicy
from pulsar_py.standalone import Broker
from pulsar_py.zookeeper.client import ZooKeeperSettings
from pulsar_py.zookeeper.client_config import ZooKeeperClientConfig
from pulsar_py.zookeeper.messages import CREATOR_ALL_ACL, OPEN_ACL


class ClusterBrokerOptions(Struct, frozen=True, kw_only=True):
    """The options of the command line; None means the broker's setting."""

    config_file: Path | None = None
    overrides: tuple[str, ...] = ()
    host: str | None = None
    port: int | None = None
    web_port: int | None = None
    log_format: str = "text"
    log_level: str = "INFO"
    is_ready_json: bool = False


class SessionEndedError(PulsarError):
    """The session with ZooKeeper has ended, and the settings say that the broker ends with it."""


def run(options: ClusterBrokerOptions) -> int:
    """Run a broker until it is stopped; returns the exit code."""
    set_up_logging(log_format=options.log_format, level=options.log_level)
    return run_to_the_end(lambda: serve(options))


async def serve(options: ClusterBrokerOptions) -> None:
    """Start a broker, print its addresses, and stop it after a signal.

    Raises:
        SessionEndedError: The session with ZooKeeper has ended, and the broker was stopped.
    """
    stopping = signals_to_event()
    config = load_settings(options.config_file, options.overrides, is_of_cluster=True)
    check_cluster_settings(config)
    settings = store_settings(config)
    stores = ClusterStores(settings)
    broker = broker_of(options, config, stores)
    is_session_over = False

    def on_session_over() -> None:
        nonlocal is_session_over
        is_session_over = True
        stopping.set()

    try:
        async with broker:
            reach_of(config, options.host, is_of_cluster=True).log()
            await watch_session(config, broker.service.metadata, on_session_over)
            ports, metadata = OpenPorts.of(broker), str(settings.addresses.local)
            sys.stdout.write(f"{ready_line(options, ports, config.clusterName, metadata)}\n")
            sys.stdout.flush()
            async with supervised(SystemClock()):
                await stopping.wait()
    finally:
        await stores.close()
    if is_session_over:
        raise SessionEndedError(
            "the session with ZooKeeper has ended: zookeeperSessionExpiredPolicy is shutdown"
        )


def ready_line(options: ClusterBrokerOptions, ports: OpenPorts, cluster: str, metadata: str) -> str:
    """What is said when all ports answer.

    In JSON it has the members of `standalone`'s, but for `data_dir`, and `cluster` and `metadata`,
    the address of the store.
    """
    if not options.is_ready_json:
        return f"pulsar-py ready: {ports} cluster {cluster} metadata {metadata}"
    return ready_json(ports, {"cluster": cluster, "metadata": metadata})


async def watch_session(
    config: BrokerConfig, metadata: MetadataStore, on_over: Callable[[], None]
) -> None:
    """Tell of the end of the session, if the settings say that the broker ends with it."""
    if config.zookeeperSessionExpiredPolicy is not SessionExpiredPolicy.SHUTDOWN:
        return
    session = await metadata.open_session()

    def on_event(event: SessionEvent) -> None:
        if event is SessionEvent.NEW_SESSION:
            on_over()

    session.listen(on_event)


def broker_of(options: ClusterBrokerOptions, config: BrokerConfig, stores: ClusterStores) -> Broker:
    """A broker that is not started; options of the command line override settings."""
    reach = reach_of(config, options.host, is_of_cluster=True)
    config = with_ports(config, options.port, options.web_port)
    return Broker(
        config=config.replace(advertisedAddress=reach.advertised),
        host=reach.host,
        port=config.brokerServicePort,
        web_port=config.webServicePort,
        metadata_store_factory=ClusterMetadata(stores, config.clusterName),
        ledger_store_factory=ClusterLedgers(stores),
        ledger_options=ledger_options(config),
        is_of_cluster=True,
    )


def check_cluster_settings(config: BrokerConfig) -> None:
    """Refuse settings with which no broker can work.

    Raises:
        ConfigurationError: Names the setting.
    """
    if not config.clusterName or not config.is_given("clusterName"):
        raise ConfigurationError(
            "clusterName is not set: expected the name that the cluster was initialized with"
        )
    ensemble_size = config.managedLedgerDefaultEnsembleSize
    write_quorum_size = config.managedLedgerDefaultWriteQuorum
    ack_quorum_size = config.managedLedgerDefaultAckQuorum
    if not ack_quorum_size <= write_quorum_size <= ensemble_size:
        raise ConfigurationError(
            f"managedLedgerDefaultAckQuorum={ack_quorum_size} must be at most "
            f"managedLedgerDefaultWriteQuorum={write_quorum_size}, and that at most "
            f"managedLedgerDefaultEnsembleSize={ensemble_size}"
        )
    for name, value, limit_name, limit in (
        ("EnsembleSize", ensemble_size, "EnsembleSize", config.managedLedgerMaxEnsembleSize),
        ("WriteQuorum", write_quorum_size, "WriteQuorum", config.managedLedgerMaxWriteQuorum),
        ("AckQuorum", ack_quorum_size, "AckQuorum", config.managedLedgerMaxAckQuorum),
    ):
        if value > limit:
            raise ConfigurationError(
                f"managedLedgerDefault{name}={value} is more than "
                f"managedLedgerMax{limit_name}={limit}"
            )


def ledger_options(config: BrokerConfig) -> LedgerOptions:
    """Options of new ledgers where no policy says otherwise."""
    return LedgerOptions(
        ensemble_size=config.managedLedgerDefaultEnsembleSize,
        write_quorum_size=config.managedLedgerDefaultWriteQuorum,
        ack_quorum_size=config.managedLedgerDefaultAckQuorum,
        digest_type=config.managedLedgerDigestType.digest_type,
        password=config.managedLedgerPassword.encode(),
    )


def store_settings(config: BrokerConfig) -> ClusterStoreSettings:
    """Where the services are, and how they are talked to.

    Raises:
        ConfigurationError: An address can't be read, or names what is not served.
    """
    return ClusterStoreSettings(
        addresses=ClusterAddresses.parse(
            metadata_url=config.metadataStoreUrl,
            configuration_url=config.configurationMetadataStoreUrl,
            bookkeeper_uri=config.bookkeeperMetadataServiceUri,
        ),
        zookeeper=zookeeper_settings(
            config,
            zookeeper_client("metadataStoreConfigPath", config.metadataStoreConfigPath),
        ),
        configuration_zookeeper=zookeeper_settings(
            config,
            zookeeper_client("configurationStoreConfigPath", config.configurationStoreConfigPath),
        ),
        bookie_tls=bookie_tls(
            is_on=config.bookkeeperTLSClientAuthentication,
            files={
                "bookkeeperTLSTrustCertsFilePath": config.bookkeeperTLSTrustCertsFilePath,
                "bookkeeperTLSCertificateFilePath": config.bookkeeperTLSCertificateFilePath,
                "bookkeeperTLSKeyFilePath": config.bookkeeperTLSKeyFilePath,
            },
            validates_hostname=config.bookkeeper_tlsHostnameVerificationEnabled,
        ),
        bookkeeper_timeout_seconds=float(config.bookkeeperClientTimeoutInSeconds),
        placement=placement_settings(config),
        quarantine=QuarantineSettings(
            is_enabled=config.bookkeeperClientHealthCheckEnabled,
            interval_seconds=config.bookkeeperClientHealthCheckIntervalSeconds,
            error_threshold_per_interval=(
                config.bookkeeperClientHealthCheckErrorThresholdPerInterval
            ),
            quarantine_seconds=config.bookkeeperClientHealthCheckQuarantineTimeInSeconds,
        ),
        speculative_read_timeout_seconds=(
            config.bookkeeperClientSpeculativeReadTimeoutInMillis / 1000
        ),
        has_sticky_reads=config.bookkeeperEnableStickyReads,
        explicit_lac_interval_seconds=config.bookkeeperExplicitLacIntervalInMills / 1000,
        max_message_bytes=config.maxMessageSize,
        publish_buffer_bytes=config.maxMessagePublishBufferSizeInMB * MEBIBYTE,
        largest=LargestQuorums(
            ensemble_size=config.managedLedgerMaxEnsembleSize,
            write_quorum_size=config.managedLedgerMaxWriteQuorum,
            ack_quorum_size=config.managedLedgerMaxAckQuorum,
        ),
    )


def zookeeper_settings(config: BrokerConfig, client: ZooKeeperClientConfig) -> ZooKeeperSettings:
    """Bounds of a client of ZooKeeper, and who it is there."""
    return ZooKeeperSettings(
        session_timeout_millis=config.metadataStoreSessionTimeoutMillis,
        operation_timeout_seconds=float(config.metadataStoreOperationTimeoutSeconds),
        max_request_bytes=client.max_request_bytes,
        max_batch_count=(
            config.metadataStoreBatchingMaxOperations if config.metadataStoreBatchingEnabled else 1
        ),
        max_batch_bytes=config.metadataStoreBatchingMaxSizeKb * 1024,
        tls=client.tls,
        sasl=client.sasl,
        acls=CREATOR_ALL_ACL if config.zkEnableSecurity else OPEN_ACL,
    )


def placement_settings(config: BrokerConfig) -> PlacementSettings:
    """How bookies are chosen for ledgers, and which of them is asked first for an entry."""
    return PlacementSettings(
        is_rack_aware=config.bookkeeperClientRackawarePolicyEnabled,
        is_region_aware=config.bookkeeperClientRegionawarePolicyEnabled,
        min_racks_per_write_quorum=config.bookkeeperClientMinNumRacksPerWriteQuorum,
        enforces_min_racks=config.bookkeeperClientEnforceMinNumRacksPerWriteQuorum,
        isolation=IsolationGroups(
            primary=_names(config.bookkeeperClientIsolationGroups),
            secondary=_names(config.bookkeeperClientSecondaryIsolationGroups),
        ),
        reorders_reads=config.bookkeeperClientReorderReadSequenceEnabled,
        local_host=config.advertisedAddress or "",
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (each.strip() for each in text.split(","))))
