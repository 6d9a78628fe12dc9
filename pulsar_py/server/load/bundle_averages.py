"""`BundleAverages`: the mean load of all bundles, as the leader of a cluster knows it (edge).

Each new report of a broker is a sample of each of its bundles. A bundle that is seen for the first
time begins with what a former leader stored of it, or with its resource quota. `store` writes the
busiest ones down for the next leader, and the sums of each broker, for tools.

Source: ModularLoadManagerImpl.updateBundleData, getBundleDataOrDefault, writeBundleDataOnZooKeeper
in Pulsar's broker.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from pulsar_py.common.errors import MetadataError
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.server.load.averages import (
    UNREPORTED,
    BundleData,
    data_of_quota,
    decode_bundle_data,
    encode_broker_average,
)
from pulsar_py.server.load.broker_report import BrokerReport

logger = logging.getLogger(__name__)

AT_ONCE: Final = 64
"""Keys that are read or written at the same time."""
MAX_BUNDLES: Final = 100_000
"""Whose means are kept; the one that was reported longest ago goes first."""


class BundleAverages:
    """Owned by the leader's balancer."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._data: dict[str, BundleData] = {}  # by `tenant/namespace/range`
        self._seen: dict[str, int] = {}  # by broker id: when its last sample was written
        self._rates: dict[str, float] = {}  # by broker id: messages a second over a long time

    @property
    def data(self) -> Mapping[str, BundleData]:
        """What is known, by `tenant/namespace/range`."""
        return self._data

    def data_of(self, bundle: str) -> BundleData:
        """The mean load of a bundle; a moderate one if nothing is known."""
        return self._data.get(bundle, UNREPORTED)

    def rate_of(self, report: BrokerReport) -> float:
        """A broker's messages a second over a long time, or what it reports as long as unknown."""
        return self._rates.get(report.broker_id, report.messages_rate)

    async def take_in(self, brokers: Mapping[str, BrokerReport]) -> bool:
        """Add the reports that are new; returns whether there are any.

        Raises:
            MetadataError: What was stored can't be read now; nothing was added.
        """
        fresh = [
            report
            for broker_id, report in brokers.items()
            if self._seen.get(broker_id) != report.update_millis
        ]
        unknown = [name for each in fresh for name in each.bundles if name not in self._data]
        loaded = dict(
            zip(unknown, await each_result(self._load, unknown, at_once=AT_ONCE), strict=True)
        )
        for report in fresh:
            self._seen[report.broker_id] = report.update_millis
            for name, stats in report.bundles.items():
                known = self._data.pop(name, None) or loaded.get(name) or UNREPORTED
                self._data[name] = known.with_sample(stats)
            self._rates[report.broker_id] = sum(
                self._data[name].long.messages_rate for name in report.bundles
            )
        for gone in self._seen.keys() - brokers.keys():
            del self._seen[gone]
            self._rates.pop(gone, None)
        while len(self._data) > MAX_BUNDLES:
            del self._data[next(iter(self._data))]
        return bool(fresh)

    async def _load(self, bundle: str) -> BundleData | None:
        stored = await self._metadata.get(paths.bundle_data(bundle))
        if stored is not None and stored.value:
            return decode_bundle_data(stored.value)
        quota = await self._metadata.get(paths.bundle_quota(bundle))
        return data_of_quota(quota.value) if quota is not None and quota.value else None

    async def store(self, brokers: Mapping[str, BrokerReport], *, most: int) -> int:
        """Write the means of the `most` busiest bundles and of all brokers; returns how many.

        Raises:
            MetadataError: Not all could be written; the next round writes them.
        """
        served = [name for each in brokers.values() for name in each.bundles if name in self._data]
        served.sort(key=lambda name: (-self._data[name].long.bytes_rate, name))
        writes = [(paths.bundle_data(name), self._data[name].encode()) for name in served[:most]]
        writes += [
            (
                paths.broker_average(broker_id),
                encode_broker_average(self.data_of(name) for name in report.bundles),
            )
            for broker_id, report in brokers.items()
        ]

        async def write(item: tuple[str, bytes]) -> None:
            await self._metadata.put(*item)

        await each_result(write, writes, at_once=AT_ONCE)
        return len(writes)

    async def forget(self, bundle: str) -> None:
        """Forget a bundle that was split; what can't be deleted is left."""
        self._data.pop(bundle, None)
        try:
            await self._metadata.delete(paths.bundle_data(bundle))
        except MetadataError as error:
            logger.info("load of a split bundle left", extra={"error": str(error)})
