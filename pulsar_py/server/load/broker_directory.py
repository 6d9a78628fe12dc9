"""`BrokerDirectory`: the brokers of the cluster that are registered now, from their reports (edge).

Reports are read once, and again when the watch says that they changed. A broker whose key is gone
is gone from here as soon as that is known. A report that can't be read is left out. How many topics
each bundle had is remembered beyond its broker: who takes it over will have as many.

Source: BrokerRegistry, ModularLoadManagerImpl.updateAllBrokerData in Pulsar's broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from pulsar_py.common.errors import MetadataError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MetadataStore, Notification, NotificationType
from pulsar_py.server.load.broker_report import BrokerReport

logger = logging.getLogger(__name__)

MAX_BUNDLES: Final = 100_000
"""Whose numbers of topics are remembered; the one that was reported longest ago goes first."""
RETRY_SECONDS: Final = 0.5
"""Seconds until reports are read again, after that failed."""


class BrokerDirectory:
    """The registered brokers; its owner starts and closes it."""

    def __init__(self, metadata: MetadataStore, clock: Clock) -> None:
        self._metadata = metadata
        self._clock = clock
        self._tasks = TaskOwner("broker directory")
        self._reports: dict[str, BrokerReport] = {}  # by broker id
        self._topics_counts: dict[str, int] = {}  # by `tenant/namespace/range`
        self._stale: dict[str, None] = {}  # broker ids, to be read again
        self._is_list_stale = True
        self._is_reading = False
        self._stop_watching: Callable[[], None] | None = None

    @property
    def brokers(self) -> Mapping[str, BrokerReport]:
        """The newest reports by broker id; this broker's own among them once it is registered."""
        return self._reports

    def topics_of(self, bundle: str) -> int | None:
        """How many topics `tenant/namespace/range` had by the last report; None if none had it."""
        return self._topics_counts.get(bundle)

    async def start(self) -> None:
        """Watch, and read all reports.

        Raises:
            MetadataError: They can't be read.
        """
        self._stop_watching = self._metadata.watch(paths.BROKERS, self._on_notification)
        await self._read_stale()

    def _on_notification(self, notification: Notification) -> None:
        parent, _, broker_id = notification.path.rpartition("/")
        if notification.type is NotificationType.ANYTHING or parent != paths.BROKERS:
            self._is_list_stale = True
        elif notification.type is NotificationType.DELETED:
            self._reports.pop(broker_id, None)
            self._stale[broker_id] = None  # it may have been created again since
        else:
            self._stale[broker_id] = None
        if not self._is_reading and self._stop_watching is not None:
            self._is_reading = True
            self._tasks.spawn(self._read_until_fresh(), "read")

    async def _read_until_fresh(self) -> None:
        try:
            while self._stale or self._is_list_stale:
                try:
                    await self._read_stale()
                except MetadataError as error:
                    logger.info("brokers not read", extra={"error": str(error)})
                    self._is_list_stale = True
                    await self._clock.sleep(RETRY_SECONDS)
        finally:
            self._is_reading = False

    async def _read_stale(self) -> None:
        """Read the list if it may have changed, then the reports that may have.

        Raises:
            MetadataError: Something can't be read.
        """
        if self._is_list_stale:
            self._is_list_stale = False
            await self._metadata.sync(paths.BROKERS)
            names = await self._metadata.children(paths.BROKERS)
            for gone in self._reports.keys() - set(names):
                del self._reports[gone]
            self._stale.update(dict.fromkeys(names))
        stale, self._stale = self._stale, {}
        await each_result(self._read_one, list(stale))

    async def _read_one(self, broker_id: str) -> None:
        stored = await self._metadata.get(paths.broker(broker_id))
        if broker_id in self._stale:
            return  # it changed meanwhile, and is read again
        self._reports.pop(broker_id, None)
        if stored is None:
            return
        try:
            report = self._reports[broker_id] = BrokerReport.decode(broker_id, stored.value)
        except ValueError as error:
            logger.warning("broker's report not read", extra={"error": str(error)})
        else:
            self._note_topics(report)

    def _note_topics(self, report: BrokerReport) -> None:
        counts = self._topics_counts
        for bundle, stats in report.bundles.items():
            counts.pop(bundle, None)
            counts[bundle] = stats.topics_count
        while len(counts) > MAX_BUNDLES:
            del counts[next(iter(counts))]

    async def close(self) -> None:
        """Stop watching."""
        if self._stop_watching is not None:
            self._stop_watching()
            self._stop_watching = None
        await self._tasks.close()
