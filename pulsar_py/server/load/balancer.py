"""`Balancer`: moves and splits bundles, on the broker that leads its cluster (edge).

Every few seconds it takes in the reports that are new. When there are some, bundles that are too
large are split; every minute bundles leave busy brokers (`shedding`); every quarter of an hour the
mean loads are stored for the next leader. Only who certainly leads does any of it, and asks before
each step. What a former leader knew and did not store is lost: means begin anew with the reports.

A bundle that was moved stays where it is for half an hour. What failed is told and left alone for
a while. The last `MAX_EVENTS` moves and splits are kept with their reasons.

Source: ModularLoadManagerImpl, LoadSheddingTask, BundleSplitterTask in Pulsar's broker.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from pulsar_py.common.errors import PulsarError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.server.load.broker_report import BrokerReport
from pulsar_py.server.load.bundle_averages import BundleAverages
from pulsar_py.server.load.cluster_membership import ClusterMembership
from pulsar_py.server.load.large_bundles import LargeBundle, SplitRules, large_bundles
from pulsar_py.server.load.placement import KnownLoads
from pulsar_py.server.load.shedding import (
    Loads,
    Shed,
    Shedder,
    SheddingRules,
    Situation,
    idler_than,
    note_move,
)

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0
"""Between two looks at the reports."""
LEFT_ALONE_SECONDS: Final = 10 * 60.0
"""For which a bundle is left alone that could not be moved or split."""
SETTLING_SECONDS: Final = 60.0
"""For which a bundle that was split is not split again: reports may still have it."""
MAX_EVENTS: Final = 100


class BalancingSettings(Struct, frozen=True, kw_only=True):
    """What the leader does, and how often."""

    is_shedding: bool = True
    shedding: SheddingRules = SheddingRules()
    shedding_seconds: float = 60.0
    grace_seconds: float = 30 * 60.0
    """For which a bundle that was moved stays."""
    excluded_namespaces: frozenset[str] = frozenset()
    moves_bound_bundles: bool = False
    """Whether bundles move whose namespace has an isolation policy or an anti-affinity group."""
    is_splitting: bool = True
    splitting: SplitRules = SplitRules()
    unloads_parts: bool = True
    store_seconds: float = 15 * 60.0
    stored_bundles_per_broker: int = 10


class Actions(Protocol):
    """Carries out what was decided, on whichever broker has the bundle."""

    async def move(self, bundle: str, owner: BrokerReport, destination: BrokerReport) -> None:
        """Have a bundle's owner hand it over.

        Raises:
            PulsarError: It could not be done, or not be told.
        """

    async def split(self, bundle: str, owner: BrokerReport, *, unloads_parts: bool) -> None:
        """Have a bundle's owner split it.

        Raises:
            PulsarError: It could not be done, or not be told.
        """


class LoadEvent(Struct, frozen=True, kw_only=True):
    """A move or a split, as operators see it."""

    at_millis: int
    kind: str
    """`moved` or `split`."""
    bundle: str
    broker_id: str
    """The owner until then."""
    destination: str | None
    reason: str
    error: str | None
    """Why it failed; None if it was done."""


class Balancer:
    """Balances the load of a cluster; does nothing while another broker leads."""

    def __init__(
        self,
        membership: ClusterMembership,
        averages: BundleAverages,
        actions: Actions,
        *,
        settings: Callable[[], BalancingSettings],
        bundles_count_of: Callable[[str], Awaitable[int]],
        clock: Clock,
    ) -> None:
        """`bundles_count_of` says how many bundles a namespace has now."""
        self._membership = membership
        self._averages = averages
        self._actions = actions
        self._settings = settings
        self._bundles_count_of = bundles_count_of
        self._clock = clock
        self._shedder = Shedder()
        self._left_alone: dict[str, float] = {}  # by bundle: until when
        self._shed_at = self._stored_at = clock.monotonic_seconds()
        self._was_leader = False
        self.events: deque[LoadEvent] = deque(maxlen=MAX_EVENTS)
        """The last moves and splits, the oldest first; since this broker was started."""
        self.moved_count = 0
        """Bundles that were moved."""
        self.moved_from: dict[str, int] = {}
        """The same by the broker that had them."""
        self.split_count = 0
        """Bundles that were split."""
        self.stored_count = 0
        """Writes of mean loads to the metadata store."""

    def usage_of(self, broker_id: str) -> float | None:
        """A broker's smoothed usage, as the last round of shedding saw it; None if none did."""
        return self._shedder.usage_of(broker_id)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except PulsarError as error:
                logger.info("load not balanced", extra={"error": str(error)})

    async def look(self) -> None:
        """Do what is due, if this broker leads.

        Raises:
            MetadataError: The store can't be read or written now.
        """
        if not self._membership.is_leader or self._membership.is_leaving:
            self._was_leader = False
            self._membership.loads = KnownLoads()
            return
        now = self._clock.monotonic_seconds()
        if not self._was_leader:
            self._was_leader = True
            self._shedder = Shedder()
            self._shed_at = self._stored_at = now
        self._left_alone = {each: end for each, end in self._left_alone.items() if end > now}
        settings = self._settings()
        brokers = {
            broker_id: report.without_heartbeat()
            for broker_id, report in self._membership.directory.brokers.items()
            if report.load_manager == self._membership.own.load_manager
        }
        is_new = await self._averages.take_in(brokers)
        self._membership.loads = KnownLoads(
            data_of=self._averages.data_of, rate_of=self._averages.rate_of
        )
        if is_new and settings.is_splitting:
            await self._split(settings, brokers)
        if now - self._shed_at >= settings.shedding_seconds:
            self._shed_at = now
            if settings.is_shedding:
                await self._shed(settings, brokers)
        if now - self._stored_at >= settings.store_seconds and self._membership.is_leader:
            self._stored_at = now
            self.stored_count += await self._averages.store(
                brokers, most=settings.stored_bundles_per_broker * len(brokers)
            )

    # --- shedding ------------------------------------------------------------------------------

    async def _shed(self, settings: BalancingSettings, brokers: Mapping[str, BrokerReport]) -> None:
        kept = set(self._left_alone)
        for report in brokers.values():
            for bundle in report.bundles:
                if await self._is_kept(settings, bundle):
                    kept.add(bundle)
        now = Situation(brokers, self._averages.data, kept)
        moved: Loads = {}
        for shed in self._shedder.choose(settings.shedding, now):
            if not self._membership.is_leader:
                return
            await self._move(settings, shed, brokers, moved)

    async def _is_kept(self, settings: BalancingSettings, bundle: str) -> bool:
        if bundle.rpartition("/")[0] in settings.excluded_namespaces:
            return True
        rules = self._membership.rules
        return (
            not settings.moves_bound_bundles and rules is not None and await rules.is_bound(bundle)
        )

    async def _move(
        self,
        settings: BalancingSettings,
        shed: Shed,
        brokers: Mapping[str, BrokerReport],
        moved: Loads,
    ) -> None:
        owner = brokers[shed.broker_id]
        idler = idler_than(settings.shedding, shed, brokers, moved)
        destination = await self._membership.candidate_among(shed.bundle, idler)
        if destination is None:
            return  # nobody is better off who may have it
        self._membership.intend(shed.bundle, destination.broker_id)
        error = await self._done(shed.bundle, self._actions.move(shed.bundle, owner, destination))
        now = self._clock.monotonic_seconds()
        if error is None:
            note_move(moved, owner, shed.bundle, destination.broker_id)
            self.moved_count += 1
            self.moved_from[owner.broker_id] = self.moved_from.get(owner.broker_id, 0) + 1
            self._left_alone[shed.bundle] = now + settings.grace_seconds
        self._note("moved", shed, destination.broker_id, error)

    # --- splits --------------------------------------------------------------------------------

    async def _split(
        self, settings: BalancingSettings, brokers: Mapping[str, BrokerReport]
    ) -> None:
        counts = {}
        for namespace in sorted(
            {each.rpartition("/")[0] for report in brokers.values() for each in report.bundles}
        ):
            counts[namespace] = await self._bundles_count_of(namespace)
        found: Sequence[LargeBundle] = large_bundles(
            settings.splitting, brokers, self._averages.data, counts
        )
        for large in found:
            if large.bundle in self._left_alone:
                continue
            if not self._membership.is_leader:
                return
            error = await self._done(
                large.bundle,
                self._actions.split(
                    large.bundle, brokers[large.broker_id], unloads_parts=settings.unloads_parts
                ),
            )
            if error is None:
                self.split_count += 1
                self._left_alone[large.bundle] = self._clock.monotonic_seconds() + SETTLING_SECONDS
                await self._averages.forget(large.bundle)
            self._note("split", large, None, error)

    async def _done(self, bundle: str, work: Awaitable[None]) -> str | None:
        """Why something could not be done; None if it was."""
        try:
            await work
        except PulsarError as error:
            self._left_alone[bundle] = self._clock.monotonic_seconds() + LEFT_ALONE_SECONDS
            return str(error) or type(error).__name__
        return None

    def _note(
        self, kind: str, what: Shed | LargeBundle, destination: str | None, error: str | None
    ) -> None:
        event = LoadEvent(
            at_millis=self._clock.wall_time_millis(),
            kind=kind,
            bundle=what.bundle,
            broker_id=what.broker_id,
            destination=destination,
            reason=what.reason,
            error=error,
        )
        self.events.append(event)
        logger.info(
            "bundle not balanced" if error else f"bundle {kind} by load",
            extra={
                "bundle": what.bundle,
                "owner": what.broker_id,
                "destination": destination,
                "reason": what.reason,
                "error": error,
            },
        )
