"""`ClusterMembership`: this broker among those of its cluster (edge).

It registers this broker and keeps its report current, takes part in the election of the leader, and
says which broker shall take a bundle that nobody owns. The leader chooses; every other broker sends
lookups to it. A broker that finds no leader that can be reached chooses itself.

A broker that leaves (`leave`) gives up the leadership and its registration: from then on nobody
chooses it, and it chooses others.

Source: ModularLoadManagerImpl, LeaderElectionService, NamespaceService.searchForCandidateBroker in
Pulsar's broker.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from pulsar_py.common.errors import MetadataError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.common.loops.clock import Clock
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.server.load.broker_directory import BrokerDirectory
from pulsar_py.server.load.broker_identity import require_free_id
from pulsar_py.server.load.broker_report import BrokerReport
from pulsar_py.server.load.cluster_rules import ClusterRules
from pulsar_py.server.load.ephemeral_record import EphemeralRecord
from pulsar_py.server.load.placement import BundlePlacement, KnownLoads, PlacementRules
from pulsar_py.server.load.reachability import Reachability

logger = logging.getLogger(__name__)


class Choice(Struct, frozen=True):
    """The broker that a lookup goes to next."""

    report: BrokerReport
    is_self: bool
    is_authoritative: bool
    """Whether that broker takes the bundle itself; False if it asks further."""


class ClusterMembership:
    """One broker's membership, from `join` to `leave`; the broker owns and closes it."""

    def __init__(
        self,
        metadata: MetadataStore,
        clock: Clock,
        chance: Random,
        *,
        rules: ClusterRules | None = None,
        placement_rules: Callable[[], PlacementRules] = PlacementRules,
    ) -> None:
        """`rules` say which broker may take what; None: each may take everything."""
        self._metadata = metadata
        self._clock = clock
        self._chance = chance
        self.directory = BrokerDirectory(metadata, clock)
        self.reachability = Reachability(clock)
        self._placement = BundlePlacement(chance)
        self._placement_rules = placement_rules
        self.rules = rules
        """Isolation policies and the like; this membership starts and closes them."""
        self.loads = KnownLoads()
        """What is known of loads; set by who balances them."""
        self._own: BrokerReport | None = None  # None before `join`
        self._registration: EphemeralRecord | None = None
        self._election: EphemeralRecord | None = None
        self._is_replaced = False  # a process that started later has this broker's id
        self.is_leaving = False
        """Whether this broker shall take no bundle any more."""
        self.on_leader_changed: Callable[[], None] = lambda: None
        """Called when this broker became or is no more the leader, or another one did."""

    @property
    def own(self) -> BrokerReport:
        """The newest report of this broker."""
        assert self._own is not None, "not joined"
        return self._own

    @property
    def is_joined(self) -> bool:
        """Whether this broker is a member."""
        return self._own is not None

    @property
    def is_leader(self) -> bool:
        """Whether this broker certainly leads at this moment, alone.

        What must run once in a cluster asks it before each step.
        """
        return self._election is not None and self._election.is_held

    @property
    def leader_id(self) -> str | None:
        """The id of the leader as far as is known; None if there is none."""
        if self._election is None:
            return None
        if self._election.is_held:
            return self.own.broker_id
        return None if self._election.foreign is None else _leader_of(self._election.foreign)

    async def join(self, own: BrokerReport) -> None:
        """Learn who is there, register, and stand for election.

        Raises:
            ConfigurationError: A process that works is registered by this broker's id.
            MetadataError: The store can't be read or written now.
        """
        await require_free_id(self._metadata, own, self._clock)
        self._own = own
        if self.rules is not None:
            await self.rules.start()
        await self.directory.start()
        self._registration = EphemeralRecord(
            self._metadata,
            paths.broker(own.broker_id),
            self._clock,
            may_take=lambda value: _started(own.broker_id, value) <= own.start_millis,
            on_change=self._on_registration_changed,
        )
        await self._registration.start(own.encode())
        self._election = EphemeralRecord(
            self._metadata,
            paths.LEADER,
            self._clock,
            may_take=lambda value: not self._is_replaced and _leader_of(value) == own.broker_id,
            on_change=self._on_election_changed,
        )
        await self._election.start(_leader_record(own))

    def _on_election_changed(self) -> None:
        logger.info("leader of the cluster", extra={"leader": self.leader_id})
        self.on_leader_changed()

    def _on_registration_changed(self) -> None:
        assert self._registration is not None, "not joined"
        if self._registration.foreign is not None and not self._is_replaced:
            self._is_replaced = self.is_leaving = True
            if self._election is not None:
                self._election.withdraw()
            logger.error(
                "another broker is registered by this broker's id: this one takes no bundle any "
                "more; stop one of them",
                extra={"broker_id": self.own.broker_id},
            )

    def update(self, report: BrokerReport) -> None:
        """Tell the others of a newer report."""
        self._own = report
        if self._registration is not None and not self.is_leaving:
            self._registration.set_value(report.encode())

    async def choose(self, bundle: str, *, authoritative: bool) -> Choice | None:
        """The broker that a lookup of an unowned `tenant/namespace/range` goes to next.

        With `authoritative` this broker was chosen already, and takes it unless it is leaving.
        None: there is no broker that may.

        Raises:
            MetadataError: The rules of the cluster can't be read now.
        """
        foreign = self._broker_of_newer_manager()
        if foreign is not None:
            return Choice(foreign, is_self=False, is_authoritative=True)
        if authoritative and not self.is_leaving:
            return Choice(self.own, is_self=True, is_authoritative=True)
        if not self.is_leader:
            leader = self.directory.brokers.get(self.leader_id or "")
            is_other = leader is not None and leader.broker_id != self.own.broker_id
            if leader is not None and is_other and await self.is_reachable(leader):
                return Choice(leader, is_self=False, is_authoritative=False)
        return await self._candidate(bundle)

    async def _candidate(self, bundle: str) -> Choice | None:
        chosen = await self.candidate(bundle)
        if chosen is None:
            return None
        is_self = chosen.broker_id == self.own.broker_id
        return Choice(chosen, is_self=is_self, is_authoritative=True)

    async def candidate(self, bundle: str) -> BrokerReport | None:
        """Which broker shall take `tenant/namespace/range`; one that can be reached.

        Raises:
            MetadataError: The rules of the cluster can't be read now.
        """
        return await self.candidate_among(bundle, self._candidates().values())

    async def candidate_among(
        self, bundle: str, reports: Iterable[BrokerReport]
    ) -> BrokerReport | None:
        """Which of some brokers shall take `tenant/namespace/range`; one that can be reached.

        Raises:
            MetadataError: The rules of the cluster can't be read now.
        """
        known = dict(self._candidates())
        allowed = {each.broker_id for each in reports} & known.keys()
        rules, apart = self._placement_rules(), None
        if self.rules is not None:
            allowed &= set(await self.rules.allowed(bundle, known))
            apart = await self.rules.apart(bundle, known, uses_domains=rules.uses_domains)
        while allowed:
            broker_id = self._placement.choose(
                bundle,
                known,
                allowed=allowed,
                rules=rules,
                apart=apart,
                loads=replace(self.loads, topics_of=self.directory.topics_of),
                now=self._clock.monotonic_seconds(),
            )
            if broker_id is None:
                return None
            report = known[broker_id]
            if broker_id == self.own.broker_id or await self.is_reachable(report):
                return report
            allowed.discard(broker_id)
        return None

    def intend(self, bundle: str, broker_id: str) -> None:
        """Have the next choice for `tenant/namespace/range` be this broker, if it is there then."""
        self._placement.intend(bundle, broker_id)

    def _candidates(self) -> Mapping[str, BrokerReport]:
        """Who may take a bundle: all that are registered, and this broker unless it leaves."""
        brokers = {**self.directory.brokers, self.own.broker_id: self.own}
        if self.is_leaving:
            del brokers[self.own.broker_id]
        return brokers

    def _broker_of_newer_manager(self) -> BrokerReport | None:
        """A broker with the load manager of the one that started last, if that is not ours."""
        brokers = list(self.directory.brokers.values())
        if not brokers:
            return None
        newest = max(brokers, key=lambda each: each.start_millis)
        if newest.load_manager == self.own.load_manager:
            return None
        same = [each for each in brokers if each.load_manager == newest.load_manager]
        return self._chance.choice(sorted(same, key=lambda each: each.broker_id))

    async def is_reachable(self, report: BrokerReport) -> bool:
        """Whether a broker accepts connections now; one without an address does not."""
        url = report.pulsar_url or report.pulsar_url_tls
        return url is not None and await self.reachability.accepts(url)

    async def leave(self) -> None:
        """Give up leadership and registration, as far as the store can be written now."""
        self.is_leaving = True
        for record in (self._election, self._registration):
            if record is None:
                continue
            try:
                await record.give_up()
            except MetadataError as error:
                logger.warning("membership not ended", extra={"error": str(error)})

    async def close(self) -> None:
        """Leave, and stop watching the others."""
        self.is_leaving = True
        for record in (self._election, self._registration):
            if record is not None:
                await record.close()
        if self.rules is not None:
            self.rules.close()
        await self.directory.close()
        await self.reachability.close()


def _leader_record(own: BrokerReport) -> bytes:
    record = {"brokerId": own.broker_id, "serviceUrl": own.web_url or own.web_url_tls}
    return json.dumps(record, separators=(",", ":")).encode()


def _leader_of(value: bytes) -> str | None:
    """The broker id in a leader's record; None if it can't be read."""
    try:
        found = parse_json(value).get("brokerId")
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, str) else None


def _started(broker_id: str, value: bytes) -> int:
    """When the process started that registered; 0 if that can't be read."""
    try:
        return BrokerReport.decode(broker_id, value).start_millis
    except ValueError:
        return 0


def with_bundles_of(report: BrokerReport, previous: BrokerReport) -> BrokerReport:
    """A report with what was gained and lost since the one before."""
    gains = tuple(name for name in report.bundles if name not in previous.bundles)
    losses = tuple(name for name in previous.bundles if name not in report.bundles)
    return replace(report, gains=gains, losses=losses)
