"""Checks a cluster's metadata before a broker writes anything there (edge).

A cluster can be in states that this broker does not take part in: it was never initialized, its
metadata is being moved to another store, or its brokers keep track of who owns what in another way.
Each is refused with one sentence.

Source: MigrationState, LocalBrokerData, BrokerLookupData in Apache Pulsar.
"""

from __future__ import annotations

from typing import Final

from pulsar_py.common.errors import UnsupportedClusterError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.metadata import paths
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.metadata.store import MetadataStore

MODULAR: Final = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
_LOAD_MANAGER: Final = "loadManagerClassName"
_NOT_STARTED: Final = "NOT_STARTED"


async def check_cluster(stores: MetadataStores, cluster: str) -> None:
    """Return if a broker may join; nothing is written.

    Raises:
        UnsupportedClusterError: It may not; says why.
        MetadataError: That can't be read.
    """
    for store in {id(each): each for each in (stores.local, stores.configuration)}.values():
        await check_migration(store)
    if not (await stores.configuration.exists(paths.cluster(cluster))):
        known = await stores.configuration.children(paths.CLUSTERS)
        raise UnsupportedClusterError(
            f"there is no cluster {cluster} in the configuration metadata store, "
            f"which has {', '.join(known) or 'none'}: run pulsar-py initialize-cluster-metadata"
        )
    await _check_load_managers(stores.local)


async def check_migration(store: MetadataStore) -> None:
    """Return if a store is not being replaced by another one.

    Raises:
        UnsupportedClusterError: It is.
        MetadataError: That can't be read.
    """
    found = await store.get(paths.MIGRATION)
    if found is None or not found.value:
        return
    phase = _member(found.value, "phase")
    if phase != _NOT_STARTED:
        raise UnsupportedClusterError(
            f"{paths.MIGRATION}: the metadata is being moved to another store, its phase is "
            f"{phase}; a broker that goes on writing here would lose what it writes"
        )


async def _check_load_managers(store: MetadataStore) -> None:
    configured = await store.get(paths.DYNAMIC_CONFIGURATION)
    name = None if configured is None else _member(configured.value, _LOAD_MANAGER)
    if name not in (None, MODULAR):
        raise _other_load_manager(paths.DYNAMIC_CONFIGURATION, name)
    for broker_id in await store.children(paths.BROKERS):
        path = paths.broker(broker_id)
        report = await store.get(path)
        name = None if report is None else _member(report.value, _LOAD_MANAGER)
        if name not in (None, MODULAR):
            raise _other_load_manager(path, name)
    if await store.exists(paths.EXTENSIBLE_LEADER):
        raise _other_load_manager(paths.EXTENSIBLE_LEADER, "ExtensibleLoadManagerImpl")


def _other_load_manager(path: str, name: object) -> UnsupportedClusterError:
    return UnsupportedClusterError(
        f"{path}: the cluster's brokers have the load manager {name}, which keeps ownership where "
        f"this broker does not look; it takes part only beside {MODULAR}"
    )


def _member(value: bytes, name: str) -> object:
    """One value of a JSON object; None where there is none."""
    try:
        document = parse_json(value) if value else {}
    except ValueError:
        return None
    return document.get(name) if isinstance(document, dict) else None
