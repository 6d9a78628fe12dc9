"""`NamespaceService`: owns bundles for this broker and answers lookups (edge).

A topic is served only while this broker owns its bundle, also when there is no other broker: the
first LOOKUP takes the ownership, an unload gives it back. `is_owned` never waits: it is called for
every PRODUCER and SUBSCRIBE. While the session with the metadata store is in doubt no bundle counts
as owned, and no lookup succeeds; connected producers and consumers go on, because receipts depend
on ledgers alone. If another broker owns a bundle afterwards, its topics are closed without writing
to the metadata store.

The bundles of a namespace are read once and watched: other brokers may split them.

Source: NamespaceService, TopicLookupBase in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from pulsar_py.common.errors import (
    ManagedLedgerFencedError,
    MetadataError,
    ServiceNotReadyError,
    SessionInDoubtError,
    TopicNotFoundError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.fresh import FreshByKey
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.metadata import paths
from pulsar_py.metadata.documents import LocalPolicies, equal_boundaries
from pulsar_py.metadata.resources import Resources
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.server.load.broker_report import HEARTBEAT_TENANT
from pulsar_py.server.namespaces import ownership_log
from pulsar_py.server.namespaces.bundles import Bundles, in_bundle
from pulsar_py.server.namespaces.locating import Located, OwnerLocator
from pulsar_py.server.namespaces.lookup import (
    BrokerAddresses,
    LocalAddresses,
    LookupResult,
    LookupType,
    select_listener,
)
from pulsar_py.server.namespaces.owner_record import OwnerRecord
from pulsar_py.server.namespaces.owner_records import OwnerRecords
from pulsar_py.server.namespaces.ownership import BundleOwnership
from pulsar_py.server.namespaces.ownership_log import OwnershipLog

if TYPE_CHECKING:
    from pulsar_py.server.load.cluster_membership import ClusterMembership


logger = logging.getLogger(__name__)

WHOLE_RANGE: Final = "0x00000000_0xffffffff"
CloseBundle = Callable[[NamespaceName, Callable[[TopicName], bool]], Awaitable[None]]
"""Closes the topics of a namespace for which the predicate holds."""

LoseBundle = Callable[[NamespaceName, Callable[[TopicName], bool]], None]
"""Gives up such topics without writing anything: another broker owns them."""


class NamespaceService:
    """The bundles and lookups of one broker, which makes and closes it."""

    def __init__(
        self,
        metadata: MetadataStore,
        resources: Resources,
        *,
        default_bundles_count: int,
        unload_timeout_seconds: float = 60.0,
        membership: ClusterMembership | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`default_bundles_count` is for namespaces whose metadata has no bundles.

        With a `membership`, which needs a `clock`, there are other brokers: a bundle without owner
        goes where the leader says. Without one this broker takes what it is asked for.
        """
        self._ownership = BundleOwnership(
            metadata,
            self._on_bundle_lost,
            *(() if clock is None else (clock.wall_time_millis,)),
            is_current=self._is_current,
        )
        self.holds_messages = self._ownership.must_hold
        """Returns whether nothing may be delivered: this process stood still for too long.

        It ends when what is owned was looked at. Asked once a batch of messages.
        """
        self._resources = resources
        self._default_bundles_count = default_bundles_count
        self._unload_timeout_seconds = unload_timeout_seconds
        self._bundles: dict[NamespaceName, Bundles] = {}  # of namespaces looked up
        # Parts of bundles that are being split; they are taken before the boundaries are stored.
        self._parts: dict[tuple[NamespaceName, str], None] = {}
        self._addresses = LocalAddresses(default=BrokerAddresses(broker_url=None))
        self._close_bundle: CloseBundle | None = None
        self._lose_bundle: LoseBundle | None = None
        self._is_closing = False
        # By bundle; the clients of all its topics have it taken at the same time.
        self._takes: FreshByKey[tuple[NamespaceName, str], OwnerRecord] = FreshByKey()
        self._records = OwnerRecords(metadata)
        self._locator: OwnerLocator | None = None  # None: there are no other brokers
        if membership is not None:
            assert clock is not None, "a membership needs a clock"
            self._locator = OwnerLocator(
                membership, self._records, self._ownership, self._take_bundle, clock
            )
        self._deletions: WeakValueDictionary[NamespaceName, asyncio.Lock] = WeakValueDictionary()
        self._stop_watching = resources.local_policies.watch(self._on_bundles_changed)

    async def start(self, close_bundle: CloseBundle, lose_bundle: LoseBundle) -> None:
        """Open the session.

        `close_bundle` closes the topics of a bundle before this broker gives it up, `lose_bundle`
        those of a bundle that another broker owns already.
        """
        self._close_bundle = close_bundle
        self._lose_bundle = lose_bundle
        await self._ownership.start()
        if self._locator is not None:
            self._records.start()

    def deletion(self, namespace: NamespaceName) -> asyncio.Lock:
        """Held while this broker deletes a namespace, so that a second deletion waits for it."""
        return self._deletions.setdefault(namespace, asyncio.Lock())

    def _on_bundles_changed(self, namespace: NamespaceName, policies: LocalPolicies | None) -> None:
        """Use the changed bundles of a namespace that was looked up."""
        if namespace in self._bundles and policies is not None and policies.boundaries is not None:
            self._bundles[namespace] = Bundles(policies.boundaries)

    def _on_bundle_lost(self, namespace: NamespaceName, bundle: str) -> None:
        """Give up the topics of a bundle that another broker owns now.

        While a bundle is being split two of them have a topic, and only one may be lost.
        """
        assert self._lose_bundle is not None, "not started"
        is_in_it = in_bundle(bundle)
        kept = [in_bundle(each) for each in self._ownership.kept_bundles(namespace)]
        self._lose_bundle(
            namespace, lambda name: is_in_it(name) and not any(holds(name) for holds in kept)
        )

    def set_addresses(self, addresses: LocalAddresses) -> None:
        """Set the addresses of the bound listeners, for lookups and ownership records."""
        self._addresses = addresses

    @property
    def addresses(self) -> LocalAddresses:
        """The addresses of this broker."""
        return self._addresses

    async def lookup(
        self, name: TopicName, *, authoritative: bool = False, listener_name: str | None = None
    ) -> LookupResult:
        """Find or become the owner of the topic's bundle, or name the broker to ask next.

        With `authoritative`, and where there are no other brokers, this one takes a bundle without
        owner. Where there are, it may take `HELD_SECONDS`.

        Raises:
            TopicNotFoundError: The namespace or tenant does not exist.
            ServiceNotReadyError: The bundle is unloading, or no such listener.
            MetadataError: Ownership can't be read or written.
        """
        if self._is_closing:
            raise ServiceNotReadyError("the broker is shutting down")
        self.check_session()
        namespace = name.namespace_name
        if await self._resources.namespaces.get(namespace) is None:
            raise TopicNotFoundError("Namespace not found")
        bundles = self._bundles.setdefault(namespace, await self.bundles_of(namespace))
        located = await self.locate_bundle(
            namespace, bundles.bundle_of(str(name)), authoritative=authoritative
        )
        self.check_session()  # it may have come into doubt while the owner was looked for
        return LookupResult(
            type=LookupType.CONNECT if located.is_owner else LookupType.REDIRECT,
            addresses=select_listener(located.addresses, listener_name),
            is_authoritative=located.is_authoritative,
            proxy_through_service_url=located.addresses.is_loopback,  # another's never are
        )

    async def locate_bundle(
        self, namespace: NamespaceName, bundle: str, *, authoritative: bool = False
    ) -> Located:
        """The owner of a bundle, or the broker to ask next; see `OwnerLocator.locate`.

        Raises:
            ServiceNotReadyError: The bundle is unloading, or was split, or no broker can take it.
            MetadataError: Ownership can't be read or written.
        """
        if self._locator is None or not self._locator.is_in_use:
            return Located(await self.acquire_bundle(namespace, bundle), is_owner=True)
        return await self._locator.locate(namespace, bundle, authoritative=authoritative)

    async def other_owner(self, namespace: NamespaceName, bundle: str) -> LocalAddresses | None:
        """The addresses of another broker that owns a bundle; None if nobody does, or this one.

        Raises:
            MetadataError: Ownership can't be read.
        """
        if self._locator is None or not self._locator.is_in_use:
            return None
        return await self._locator.other_owner(namespace, bundle)

    async def own_heartbeat(self, broker_id: str) -> None:
        """Own the bundle by which other brokers and tools see that this broker works.

        Raises:
            MetadataError: It can't be written now.
        """
        await self._ownership.acquire(
            NamespaceName(HEARTBEAT_TENANT, broker_id), WHOLE_RANGE, self._addresses
        )

    async def acquire_bundle(self, namespace: NamespaceName, bundle: str) -> LocalAddresses:
        """Become the owner of a bundle if it has none; returns the addresses of its owner.

        Raises:
            ServiceNotReadyError: The bundle is unloading, or was split a moment ago.
            MetadataError: Ownership can't be read or written.
        """
        owner = await self._take_bundle(namespace, bundle)
        if owner.is_disabled:
            raise ServiceNotReadyError(f"Namespace bundle {namespace}/{bundle} is being unloaded")
        return owner.addresses

    async def _take_bundle(self, namespace: NamespaceName, bundle: str) -> OwnerRecord:
        """Take a bundle that has no owner; returns its owner's record."""
        key = namespace, bundle
        return await self._takes.get(key, partial(self._take_once, namespace, bundle))

    async def _take_once(self, namespace: NamespaceName, bundle: str) -> OwnerRecord:
        owner = await self._ownership.acquire(namespace, bundle, self._addresses)
        self.check_session()
        return owner

    async def _is_current(self, namespace: NamespaceName, bundle: str) -> bool:
        """Whether a bundle that was just taken is one of its namespace's, or is about to be.

        Who splits a bundle stores the new boundaries before its ownership ends. So what is stored
        after it was taken tells, even if the news of the split is still on its way.
        """
        if (namespace, bundle) in self._parts:
            return True
        path = paths.local_policies(namespace)
        await self._resources.local.sync(path)
        stored = await self._resources.local.get(path)
        boundaries = None if stored is None else LocalPolicies.from_bytes(stored.value).boundaries
        if boundaries is None:
            return True
        self._bundles[namespace] = Bundles(boundaries)
        return bundle in self._bundles[namespace].names

    def owns_bundle(self, namespace: NamespaceName, bundle: str) -> bool:
        """Whether this broker certainly owns the bundle now, and is not unloading it."""
        return self._ownership.owns(namespace, bundle)

    async def split_bundle(
        self, namespace: NamespaceName, bundle: str, places: Sequence[int]
    ) -> list[str]:
        """Cut a bundle of this broker at hashes inside it; returns the new bundles' names.

        They are this broker's, too, and their topics stay loaded with all their clients. First the
        new bundles are taken, then the boundaries stored, then the old bundle is given up: at each
        moment one of them covers each topic.

        Raises:
            ValueError: There is no such bundle, or a place is not inside it.
            ServiceNotReadyError: This broker does not own it, or others changed the boundaries or
                took a part at the same time.
            MetadataError: It can't be stored now; the parts stay owned, which changes nothing.
        """
        known = await self.bundles_of(namespace)
        wanted = known.split(bundle, places)
        if not self._ownership.owns(namespace, bundle):
            raise ServiceNotReadyError(f"{namespace}/{bundle} is not owned by this broker")
        parts = [each for each in wanted.names if each not in known.names]
        self._parts.update({(namespace, part): None for part in parts})
        try:
            for part in parts:
                await self._take_part(namespace, part)
            await self._store_bundles(namespace, known, wanted)
        except ServiceNotReadyError:
            for part in parts:
                await self._ownership.release(namespace, part)
            raise
        finally:
            for part in parts:
                self._parts.pop((namespace, part), None)
        self._bundles[namespace] = wanted
        try:
            await self._ownership.release(namespace, bundle, ownership_log.SPLIT)
        except MetadataError as error:  # it is tried again; lookups do not ask for it any more
            self._log_unclean("split bundle not released", namespace, bundle, error)
        logger.info("bundle split", extra={"namespace": str(namespace), "bundle": bundle})
        return parts

    async def _take_part(self, namespace: NamespaceName, bundle: str) -> None:
        await self._ownership.acquire(namespace, bundle, self._addresses)
        if not self._ownership.owns(namespace, bundle):
            raise ServiceNotReadyError(f"{namespace}/{bundle} has an owner already")

    async def _store_bundles(
        self, namespace: NamespaceName, known: Bundles, wanted: Bundles
    ) -> None:
        def change(policies: LocalPolicies | None) -> LocalPolicies:
            policies = policies or LocalPolicies()
            if (policies.boundaries or known.boundaries) != known.boundaries:
                raise ServiceNotReadyError(f"the bundles of {namespace} have changed; try again")
            return policies.replace(boundaries=wanted.boundaries)

        await self._resources.local_policies.update_or_create(namespace, change)

    async def check_tenant(self, name: TopicName) -> None:
        """Return if a topic's tenant exists.

        Raises:
            TopicNotFoundError: It does not.
        """
        if not await self._resources.tenants.exists(name.tenant):
            raise TopicNotFoundError(
                f"Tenant or namespace or topic does not exist: {name.namespace_name}"
            )

    def check_session(self) -> None:
        """Return if no other broker can own this broker's bundles at this moment.

        Raises:
            ServiceNotReadyError: Another one may: no new producer or consumer may be added.
        """
        try:
            self._ownership.check_session()
        except SessionInDoubtError as error:
            raise ServiceNotReadyError(str(error)) from error

    async def ensure_owned(self, name: TopicName) -> None:
        """Become the owner of the topic's bundle, as an administrator's request needs.

        Raises:
            TopicNotFoundError, ServiceNotReadyError: As `lookup`.
        """
        if not self.is_owned(name):
            await self.lookup(name, authoritative=True)

    async def still_owns(self, managed_ledger_name: str) -> bool:
        """Read from the metadata store whether this broker owns a managed ledger's bundle now.

        Raises:
            SessionInDoubtError, MetadataUnavailableError: That can't be found out now.
        """
        name = TopicName.from_managed_ledger_name(managed_ledger_name)
        bundle = await self.bundle_of(name)
        return await self._ownership.still_owns(name.namespace_name, bundle)

    def check_owner(self, managed_ledger_name: str) -> None:
        """Return if this broker certainly owns a managed ledger's bundle, unloading it or not.

        Else the managed ledger's metadata must not be written.

        Raises:
            SessionInDoubtError: The session is in doubt, or its records were not read again since.
            ManagedLedgerFencedError: The bundle was given up or lost.
        """
        self._ownership.check_session()
        name = TopicName.from_managed_ledger_name(managed_ledger_name)
        namespace = name.namespace_name
        bundles = self._bundles.get(namespace)
        if bundles is not None and self._ownership.holds(namespace, bundles.bundle_of(str(name))):
            return
        # The namespace may be cut otherwise by now than when the bundle was taken.
        for _, bundle in self._ownership.owned_bundles(namespace):
            if in_bundle(bundle)(name) and self._ownership.holds(namespace, bundle):
                return
        raise ManagedLedgerFencedError(
            f"{managed_ledger_name}: this broker gave the bundle up, another one may own it"
        )

    def when_settled(self, callback: Callable[[], None]) -> None:
        """Call back each time that what is owned was looked at after a doubt."""
        self._ownership.on_settled = callback

    def may_change(self) -> bool:
        """Whether the metadata of what is owned here can be changed now, as far as is known.

        What can wait does not begin while this is False: it would stop half-way.
        """
        return self._ownership.may_change

    def is_owned(self, name: TopicName) -> bool:
        """Whether this broker certainly owns the topic's bundle now."""
        bundles = self._bundles.get(name.namespace_name)
        if bundles is None:
            return False
        return self._ownership.owns(name.namespace_name, bundles.bundle_of(str(name)))

    async def not_owned_error(self, name: TopicName) -> ServiceNotReadyError:
        """The error for a client that asked for a topic which this broker does not own.

        Where that is only because it was started again a moment ago, it does by the next time.
        """
        try:
            self._ownership.check_session()
        except SessionInDoubtError as error:
            return ServiceNotReadyError(str(error))
        bundle = await self.bundle_of(name)
        if self._locator is not None and self._locator.is_in_use and not self._is_closing:
            with suppress(MetadataError, ServiceNotReadyError):
                bundles = await self.bundles_of(name.namespace_name)
                self._bundles.setdefault(name.namespace_name, bundles)
                await self._locator.take_former(name.namespace_name, bundle)
        return ServiceNotReadyError(
            f"Namespace bundle ({name.namespace_name}/{bundle}) for topic ({name}) not served by "
            f"this instance:{self._addresses.default.broker_url}. Please redo the lookup."
        )

    async def bundles_of(self, namespace: NamespaceName) -> Bundles:
        """The bundles of a namespace; if it does not exist, those that it would get."""
        if (known := self._bundles.get(namespace)) is not None:
            return known
        boundaries = await self._resources.namespaces.bundles_of(namespace)
        return Bundles(boundaries or equal_boundaries(self._default_bundles_count))

    async def bundle_of(self, name: TopicName) -> str:
        """The topic's bundle, `0x00000000_0x40000000`."""
        return (await self.bundles_of(name.namespace_name)).bundle_of(str(name))

    @property
    def log(self) -> OwnershipLog:
        """What this broker gained and lost, and why."""
        return self._ownership.log

    @property
    def doubts_count(self) -> int:
        """How often the session with the metadata store was in doubt."""
        return self._ownership.doubts_count

    @property
    def held_lookups_count(self) -> int:
        """Lookups that are held now."""
        return 0 if self._locator is None else self._locator.held_count

    def owned_bundles(self) -> list[tuple[NamespaceName, str]]:
        """All bundles that this broker owns."""
        return self._ownership.owned_bundles()

    async def unload_namespace(self, namespace: NamespaceName) -> None:
        """Unload all bundles of a namespace that this broker owns.

        Its cached boundaries are forgotten, too: it may be deleted and created with others.
        """
        for _, bundle in self._ownership.owned_bundles(namespace):
            await self.unload_bundle(namespace, bundle)
        self._bundles.pop(namespace, None)

    async def unload_bundle(
        self, namespace: NamespaceName, bundle: str, reason: str = ownership_log.UNLOADED
    ) -> None:
        """Close a bundle's topics and give up its ownership, if this broker owns it.

        Topics that do not close in time, or not cleanly, are logged and left: the ownership is
        given up anyway. Once begun the unload ends by itself, even if the metadata store can't be
        written for a while.

        Raises:
            SessionInDoubtError: The unload was not begun.
            MetadataError: It was not begun either; or the topics are closed, and the ownership
                record will be deleted later.
        """
        if (namespace, bundle) not in self._ownership.owned_bundles(namespace):
            return
        self._ownership.check_session()
        if bundle not in (await self.bundles_of(namespace)).names:
            # Perhaps a part whose split was stored without an answer: before another broker takes
            # it, this one has to know that the whole is none any more.
            await self._is_current(namespace, bundle)
        try:
            await self._ownership.disable(namespace, bundle)
        except MetadataError as error:  # lookups send clients here until the record is deleted
            self._log_unclean("bundle not marked as unloading", namespace, bundle, error)
        assert self._close_bundle is not None, "not started"
        try:
            async with asyncio.timeout(self._unload_timeout_seconds):
                await self._close_bundle(namespace, in_bundle(bundle))
        except TimeoutError as error:
            self._log_unclean("topics did not close in time", namespace, bundle, error)
        await self._ownership.release(namespace, bundle, reason)

    @staticmethod
    def _log_unclean(event: str, namespace: NamespaceName, bundle: str, error: Exception) -> None:
        logger.warning(
            event, extra={"namespace": str(namespace), "bundle": bundle, "error": str(error)}
        )

    async def close(self) -> None:
        """Refuse lookups, unload all bundles, and give up those that could not be unloaded."""
        self._is_closing = True
        self._stop_watching()
        for namespace, bundle in self._ownership.owned_bundles():
            await self._unload_logged((namespace, bundle))
        self._records.close()
        await self._ownership.close()

    async def _unload_logged(self, key: tuple[NamespaceName, str]) -> None:
        try:
            await self.unload_bundle(*key, ownership_log.HANDED_OVER)
        except MetadataError as error:
            self._log_unclean("bundle not released", *key, error)
