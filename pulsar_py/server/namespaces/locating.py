"""`OwnerLocator`: finds the broker that owns a bundle, or chooses the one to own it (edge).

A bundle that has an owner is that owner's. One without goes where the cluster's leader says
(`ClusterMembership.choose`): this broker takes it, or its client is sent on.

A lookup is *held* while its answer would be of no use: while the named owner accepts no connection,
and while a bundle is being handed over. It goes on at the moment at which the ownership record is
gone or changed. A client that gets a dead address or an error instead waits twice as long each
time before it asks again, and comes back long after the bundle was taken. After `HELD_SECONDS` it
gets what is stored, which is less than clients wait for an answer.

Source: NamespaceService.findBrokerServiceUrl, searchForCandidateBroker in Pulsar's broker, which
hold no lookups.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from pulsar_py.common.errors import ServiceNotReadyError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata import paths
from pulsar_py.server.load.broker_report import BrokerReport
from pulsar_py.server.namespaces.lookup import BrokerAddresses, LocalAddresses
from pulsar_py.server.namespaces.owner_record import OwnerRecord, decode_listeners
from pulsar_py.server.namespaces.owner_records import OwnerRecords
from pulsar_py.server.namespaces.ownership import BundleOwnership

if TYPE_CHECKING:
    from pulsar_py.server.load.cluster_membership import ClusterMembership


HELD_SECONDS: Final = 20.0
"""For which a lookup is held at most; clients wait 30 seconds for an answer."""
RECHECK_SECONDS: Final = 0.25
"""After which an owner that refused connections is tried again."""

Take = Callable[[NamespaceName, str], Awaitable[OwnerRecord]]
"""Becomes the owner of a bundle unless it has one; returns the owner's record."""


class Located(Struct, frozen=True):
    """A broker's addresses, and whether it is the owner or only the next to ask."""

    addresses: LocalAddresses
    is_owner: bool
    is_authoritative: bool = True
    """Of the next to ask: whether it shall take the bundle itself."""


class OwnerLocator:
    """Locates owners for the lookups of one broker, whose `NamespaceService` owns it."""

    def __init__(
        self,
        membership: ClusterMembership,
        records: OwnerRecords,
        ownership: BundleOwnership,
        take: Take,
        clock: Clock,
    ) -> None:
        self._membership = membership
        self._records = records
        self._ownership = ownership
        self._take = take
        self._clock = clock
        self.held_count = 0
        """Lookups that are held now."""

    @property
    def is_in_use(self) -> bool:
        """Whether this broker is one of several; before it has joined it is alone."""
        return self._membership.is_joined

    async def locate(
        self, namespace: NamespaceName, bundle: str, *, authoritative: bool = False
    ) -> Located:
        """The owner of a bundle, or the broker to ask next. May take up to `HELD_SECONDS`.

        Raises:
            ServiceNotReadyError: There is no broker for it, or it is still being handed over.
            MetadataError: Ownership can't be read or written.
        """
        path = paths.bundle_owner(namespace, bundle)
        deadline = self._clock.monotonic_seconds() + HELD_SECONDS
        while True:
            changes_count = self._records.changes_count
            owner = await self._owner_of(namespace, bundle, is_newest=authoritative)
            if owner is not None and self._is_former(namespace, bundle, owner):
                owner, authoritative = None, True  # nobody else can be sent to it
            if owner is None:
                choice = await self._membership.choose(
                    f"{namespace}/{bundle}", authoritative=authoritative
                )
                if choice is None:
                    raise ServiceNotReadyError(
                        f"no broker can take the bundle {namespace}/{bundle}"
                    )
                if not choice.is_self:
                    return Located(addresses_of(choice.report), False, choice.is_authoritative)
                changes_count = self._records.changes_count
                owner = await self._take(namespace, bundle)
            if not owner.is_disabled and await self._is_usable(namespace, bundle, owner):
                return Located(owner.addresses, is_owner=True)
            left_seconds = deadline - self._clock.monotonic_seconds()
            if left_seconds <= 0:
                return _after_holding(namespace, bundle, owner)
            await self._hold(path, changes_count, min(left_seconds, RECHECK_SECONDS))

    async def other_owner(self, namespace: NamespaceName, bundle: str) -> LocalAddresses | None:
        """The addresses of another broker that owns a bundle; None if nobody does, or this one.

        Raises:
            MetadataError: Ownership can't be read.
        """
        if self._ownership.record_of(namespace, bundle) is not None:
            return None
        record = await self._records.get_newest(paths.bundle_owner(namespace, bundle))
        own = addresses_of(self._membership.own).default
        return None if record is None or record.addresses.default == own else record.addresses

    async def take_former(self, namespace: NamespaceName, bundle: str) -> None:
        """Take a bundle up whose record is of a former session of this broker.

        Other brokers send clients here because of that record, so no lookup would do it.

        Raises:
            MetadataError, ServiceNotReadyError: It can't be taken now.
        """
        if self._membership.is_leaving:
            return
        record = await self._records.get(paths.bundle_owner(namespace, bundle))
        if record is not None and self._is_former(namespace, bundle, record):
            await self._take(namespace, bundle)

    async def _hold(self, path: str, changes_count: int, timeout_seconds: float) -> None:
        self.held_count += 1
        try:
            await self._records.wait_for_change(
                path, since=changes_count, timeout_seconds=timeout_seconds
            )
        finally:
            self.held_count -= 1

    async def _owner_of(
        self, namespace: NamespaceName, bundle: str, *, is_newest: bool
    ) -> OwnerRecord | None:
        """The owner's record as stored, this broker's as it has it; None if there is none.

        Who was chosen to take a bundle must not name a former owner, whose record is gone already.
        """
        held = self._ownership.record_of(namespace, bundle)
        path = paths.bundle_owner(namespace, bundle)
        return held or await (self._records.get_newest if is_newest else self._records.get)(path)

    def _is_former(self, namespace: NamespaceName, bundle: str, record: OwnerRecord) -> bool:
        """Whether it is this broker's, of a former session."""
        if self._ownership.record_of(namespace, bundle) is not None:
            return False
        return record.addresses.default == addresses_of(self._membership.own).default

    async def _is_usable(self, namespace: NamespaceName, bundle: str, owner: OwnerRecord) -> bool:
        if self._ownership.owns(namespace, bundle):
            return True
        url = owner.addresses.default.broker_url or owner.addresses.default.broker_url_tls
        return url is None or await self._membership.reachability.accepts(url)


def _after_holding(namespace: NamespaceName, bundle: str, owner: OwnerRecord) -> Located:
    """What a lookup gets that was held in vain: a dead address is still the owner's.

    An error would have official clients close the connection that they asked on.

    Raises:
        ServiceNotReadyError: The bundle is still being handed over.
    """
    if owner.is_disabled:
        raise ServiceNotReadyError(f"Namespace bundle {namespace}/{bundle} is being unloaded")
    return Located(owner.addresses, is_owner=True)


def addresses_of(report: BrokerReport) -> LocalAddresses:
    """The addresses that a broker's report names."""
    return LocalAddresses(
        default=BrokerAddresses(
            broker_url=report.pulsar_url,
            broker_url_tls=report.pulsar_url_tls,
            http_url=report.web_url,
            http_url_tls=report.web_url_tls,
        ),
        by_listener=decode_listeners(report.advertised_listeners),
    )
