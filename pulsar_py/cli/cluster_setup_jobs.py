"""The work of `pulsar-py initialize-cluster-metadata` (edge)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from pulsar_py.cli.places import show
from pulsar_py.cli.security.cluster_security import zookeeper_client
from pulsar_py.cluster_stores import ClusterAddresses, ClusterStores, ClusterStoreSettings
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.cluster_checks import check_migration
from pulsar_py.metadata.cluster_setup import (
    DEFAULT_BUNDLES_COUNT,
    ClusterSetup,
    SetupStep,
    set_up_cluster,
)
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.client import ZooKeeperSettings
from pulsar_py.zookeeper.messages import CREATOR_ALL_ACL, OPEN_ACL

_ADDRESSES = {
    "web_service_url": "serviceUrl",
    "web_service_url_tls": "serviceUrlTls",
    "broker_service_url": "brokerServiceUrl",
    "broker_service_url_tls": "brokerServiceUrlTls",
    "proxy_url": "proxyServiceUrl",
    "proxy_protocol": "proxyProtocol",
    "auth_plugin": "authenticationPlugin",
    "auth_parameters": "authenticationParameters",
}
"""Members of the cluster's record by the names of the options."""


async def initialize(options: Mapping[str, Any]) -> int:  # Any: each option has its own type
    """Write what is missing; returns the exit code.

    Raises:
        ConfigurationError: An address can't be read, or names what is not served.
        UnsupportedClusterError: The metadata is being moved to another store.
        MetadataError: Something could not be written; doing it again goes on.
    """
    addresses = _addresses(options)
    stores = ClusterStores(
        ClusterStoreSettings(
            addresses=addresses,
            zookeeper=_zookeeper(options, "metadata-store-config-path"),
            configuration_zookeeper=_zookeeper(options, "configuration-metadata-store-config-path"),
        )
    )
    clock = SystemClock()
    try:
        both = MetadataStores(
            local=await stores.zookeeper(addresses.local, clock, makes_chroot=True),
            configuration=await stores.zookeeper(
                addresses.configuration, clock, makes_chroot=True, is_configuration=True
            ),
        )
        for store in (both.local, both.configuration):
            await check_migration(store)
        steps = await set_up_cluster(both, _setup(options, addresses.local))
    finally:
        await stores.close()
    cluster = options["cluster"]
    rows = [{"path": step.path, "outcome": step.outcome} for step in steps]
    show(rows, ("path", "outcome"), options["output"])
    if options["output"] == "table":
        sys.stdout.write(f"{_summary(cluster, [step.outcome for step in steps])}\n")
    return 0


def _summary(cluster: str, outcomes: list[str]) -> str:
    if set(outcomes) == {SetupStep.ALREADY}:
        return f"Cluster metadata for '{cluster}' was there already; nothing was changed"
    return f"Cluster metadata for '{cluster}' setup correctly"


def _zookeeper(options: Mapping[str, Any], name: str) -> ZooKeeperSettings:  # Any: as above
    client = zookeeper_client(f"--{name}", options[name.replace("-", "_")] or "")
    return ZooKeeperSettings(
        session_timeout_millis=options["session_millis"],
        max_request_bytes=client.max_request_bytes,
        tls=client.tls,
        sasl=client.sasl,
        acls=CREATOR_ALL_ACL if options["zk_enable_security"] else OPEN_ACL,
    )


def _addresses(options: Mapping[str, Any]) -> ClusterAddresses:  # Any: as above
    addresses = ClusterAddresses.parse(
        metadata_url=options["metadata_store"],
        configuration_url=options["configuration_store"],
        bookkeeper_uri=options["existing_bookkeeper"] or "",
    )
    if not options["cluster"].strip() or "/" in options["cluster"]:
        raise ConfigurationError(
            f"--cluster {options['cluster']!r} is no name of a cluster: give one without slashes"
        )
    return addresses


def _setup(options: Mapping[str, Any], local: ZooKeeperAddress) -> ClusterSetup:  # Any: as above
    members = {
        name: options[option] for option, name in _ADDRESSES.items() if options[option] is not None
    }
    return ClusterSetup(
        cluster=options["cluster"],
        addresses={**members, "brokerClientTlsEnabled": options["tls_enable"]},
        zookeeper_servers=",".join(f"{host}:{port}" for host, port in local.servers),
        ledgers_path=f"{local.chroot}/ledgers",
        has_bookkeeper=options["existing_bookkeeper"] is not None,
        bundles_count=options["bundles_count"] or DEFAULT_BUNDLES_COUNT,
        coordinators_count=options["coordinators_count"],
        instance_id=str(uuid4()),
    )
