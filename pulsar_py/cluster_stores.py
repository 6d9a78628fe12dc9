"""`ClusterStores`: opens the stores of a broker on Apache ZooKeeper and Apache BookKeeper (edge).

The composition root gives a broker factories of its stores (`embedded_ledgers`,
`metadata.embedded`); these two open clients of the services. Nothing is written before the cluster
was found to be one that the broker can join.

A ZooKeeper address that stands for several roles gets one client, so that a broker has one session
with it.

Third-party packages it may import: none.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Final

from pulsar_py.bookkeeper.bookies.connection import ConnectionLimits
from pulsar_py.bookkeeper.bookies.health import QuarantineSettings
from pulsar_py.bookkeeper.cluster.settings import MEBIBYTE
from pulsar_py.bookkeeper.placement.placement import PlacementSettings
from pulsar_py.bookkeeper.service_uri import BookKeeperMetadataAddress, check_is_zookeeper
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore, BookKeeperSettings
from pulsar_py.common.errors import ConfigurationError, StorageError
from pulsar_py.common.failures import OnFailureAwait
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.network.tls import TlsOptions
from pulsar_py.ledgers.ids import LedgerIds
from pulsar_py.ledgers.store import LedgerListener, LedgerOptions, LedgerStore, LedgerWriter
from pulsar_py.metadata import paths
from pulsar_py.metadata.cluster_checks import check_cluster
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.metadata.ledger_ids import MetadataLedgerIds
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.client import ZooKeeperSettings
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore

FRAME_ROOM_BYTES: Final = 10 * 1024
"""By which a bookie's frame may exceed the largest message, as Apache Pulsar configures bookies."""


@dataclass(frozen=True, slots=True)
class LargestQuorums:
    """The largest ensemble and quorums that a ledger may have."""

    ensemble_size: int = 5
    write_quorum_size: int = 5
    ack_quorum_size: int = 5

    def check(self, options: LedgerOptions) -> None:
        """Refuse a ledger with more.

        Raises:
            StorageError: One of its sizes is larger.
        """
        for name, limit, wanted in (
            ("ensemble", self.ensemble_size, options.ensemble_size),
            ("write quorum", self.write_quorum_size, options.write_quorum_size),
            ("ack quorum", self.ack_quorum_size, options.ack_quorum_size),
        ):
            if wanted > limit:
                raise StorageError(f"no ledger can have an {name} of {wanted}, at most {limit}")


@dataclass(frozen=True, slots=True)
class ClusterAddresses:
    """Where the services of a cluster are."""

    local: ZooKeeperAddress
    configuration: ZooKeeperAddress
    bookkeeper: ZooKeeperAddress
    ledgers_root: str = paths.LEDGERS

    @classmethod
    def parse(
        cls, *, metadata_url: str, configuration_url: str = "", bookkeeper_uri: str = ""
    ) -> ClusterAddresses:
        """Read the settings; an empty one is that of the cluster's ZooKeeper.

        Raises:
            ConfigurationError: One can't be read, or names what is not served.
        """
        if not metadata_url:
            raise ConfigurationError(
                "metadataStoreUrl is not set: expected zk:HOST:PORT,HOST:PORT/chroot"
            )
        local = _zookeeper("metadataStoreUrl", metadata_url)
        configuration = (
            _zookeeper("configurationMetadataStoreUrl", configuration_url)
            if configuration_url
            else local
        )
        if not bookkeeper_uri:
            return cls(local, configuration, local)
        try:
            address = BookKeeperMetadataAddress.parse(bookkeeper_uri)
            bookkeeper = ZooKeeperAddress.parse(address.zookeeper_url)
        except ValueError as error:
            text = f"bookkeeperMetadataServiceUri={bookkeeper_uri}: {error}"
            raise ConfigurationError(text) from None
        return cls(local, configuration, bookkeeper, address.root)


def _zookeeper(setting: str, url: str) -> ZooKeeperAddress:
    try:
        check_is_zookeeper(url)
        return ZooKeeperAddress.parse(url)
    except ValueError as error:
        raise ConfigurationError(f"{setting}={url}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStoreSettings:
    """The settings of the clients of ZooKeeper and BookKeeper."""

    addresses: ClusterAddresses
    zookeeper: ZooKeeperSettings = field(default_factory=ZooKeeperSettings)
    configuration_zookeeper: ZooKeeperSettings | None = None
    """Of the configuration store, where its address is another; None: the same."""
    bookie_tls: TlsOptions | None = None
    bookkeeper_timeout_seconds: float = 30.0
    placement: PlacementSettings = field(default_factory=PlacementSettings)
    quarantine: QuarantineSettings = field(default_factory=QuarantineSettings)
    speculative_read_timeout_seconds: float = 0.0
    has_sticky_reads: bool = True
    explicit_lac_interval_seconds: float = 0.0
    max_message_bytes: int = 5 * 1024 * 1024
    publish_buffer_bytes: int = 64 * MEBIBYTE
    """What publishers may have unanswered before nothing more is read from them; 0 or less: no
    limit. A bookie may have twice as much waiting: each entry has a frame of its own, and what was
    read together is published together, so that lagging bookies make publishers wait, not fail."""
    largest: LargestQuorums = field(default_factory=LargestQuorums)

    @property
    def bookkeeper(self) -> BookKeeperSettings:
        """Bounds of the client of BookKeeper."""
        seconds = self.bookkeeper_timeout_seconds
        waiting_bytes = 2 * max(self.publish_buffer_bytes, 64 * MEBIBYTE)
        return BookKeeperSettings(
            max_pinned_bytes=2 * waiting_bytes,
            root=self.addresses.ledgers_root,
            answer_timeout_seconds=seconds,
            placement=self.placement,
            quarantine=self.quarantine,
            speculative_read_timeout_seconds=self.speculative_read_timeout_seconds,
            has_sticky_reads=self.has_sticky_reads,
            explicit_lac_interval_seconds=self.explicit_lac_interval_seconds,
            connection=ConnectionLimits(
                connect_timeout_seconds=seconds / 8,
                request_timeout_seconds=seconds / 4,
                max_waiting_bytes=waiting_bytes,
                max_frame_bytes=self.max_message_bytes + FRAME_ROOM_BYTES,
                tls=self.bookie_tls,
            ),
        )


class BoundedLedgers(BookKeeperLedgerStore):
    """A client of BookKeeper that makes no ledger with more bookies than it may have."""

    largest = LargestQuorums()

    async def create(self, listener: LedgerListener, options: LedgerOptions) -> LedgerWriter:
        """Record a new ledger on bookies that take entries."""
        self.largest.check(options)
        return await super().create(listener, options)

    async def check_takes(self, options: LedgerOptions) -> None:
        """Return if there are bookies enough."""
        await self._cluster.ensembles.check(options)


class ClusterStores:
    """The clients of one broker or command; `close` ends those that no broker closes."""

    def __init__(self, settings: ClusterStoreSettings, chance: Random | None = None) -> None:
        """`chance` spreads sessions over servers and ledgers over bookies; None: its own."""
        self._settings = settings
        self._chance = chance
        self._opened: dict[ZooKeeperAddress, MetadataStore] = {}  # by `_key`
        self._stack = AsyncExitStack()

    async def zookeeper(
        self,
        address: ZooKeeperAddress,
        clock: Clock,
        *,
        makes_chroot: bool = False,
        is_configuration: bool = False,
    ) -> MetadataStore:
        """The client of these servers and this chroot; made at the first call.

        `is_configuration` has it made with the settings of the configuration store.

        Raises:
            MetadataUnavailableError: No server answered in time.
        """
        key = _key(address)
        if key not in self._opened:
            settings = self._settings.zookeeper
            if is_configuration:
                settings = self._settings.configuration_zookeeper or settings
            store = await ZooKeeperMetadataStore.open(
                address,
                clock,
                chance=self._chance,
                settings=settings,
                makes_chroot=makes_chroot,
            )
            self._stack.push_async_callback(store.close)
            self._opened[key] = store
        return self._opened[key]

    async def metadata(self, clock: Clock) -> MetadataStores:
        """The stores by role, unchecked."""
        addresses = self._settings.addresses
        return MetadataStores(
            local=await self.zookeeper(addresses.local, clock),
            configuration=await self.zookeeper(
                addresses.configuration, clock, is_configuration=True
            ),
        )

    async def bookkeeper_metadata(self, clock: Clock) -> MetadataStore:
        """The store that BookKeeper's metadata is in."""
        return await self.zookeeper(self._settings.addresses.bookkeeper, clock)

    async def ledgers(self, clock: Clock, ledger_ids: LedgerIds | None = None) -> LedgerStore:
        """A client of BookKeeper; whoever called closes it before these stores.

        Raises:
            StorageError: BookKeeper's metadata is not formatted, or has an unknown layout.
        """
        metadata = await self.bookkeeper_metadata(clock)
        if ledger_ids is None or metadata is not self._local:
            prefix = f"{self._settings.addresses.ledgers_root}/idgen/ID-"
            own = MetadataLedgerIds(metadata, prefix)
            self._stack.push_async_callback(own.close)
            ledger_ids = own
        store = await BoundedLedgers.connect(
            metadata,
            clock,
            ledger_ids,
            chance=self._chance,
            settings=self._settings.bookkeeper,
            racks_metadata=await self.zookeeper(self._settings.addresses.local, clock),
        )
        assert isinstance(store, BoundedLedgers)
        store.largest = self._settings.largest
        return store

    @property
    def _local(self) -> MetadataStore | None:
        """The store that a broker's own ids come from; None if those are of another root."""
        addresses = self._settings.addresses
        if addresses.ledgers_root != paths.LEDGERS:
            return None
        return self._opened.get(_key(addresses.local))

    async def close(self) -> None:
        """End all clients. May be called again."""
        await self._stack.aclose()
        self._opened.clear()


def _key(address: ZooKeeperAddress) -> ZooKeeperAddress:
    """The same for the same servers in any order."""
    return ZooKeeperAddress(tuple(sorted(address.servers)), address.chroot)


class ClusterMetadata:
    """The `MetadataStoreFactory` of ZooKeeper."""

    def __init__(self, stores: ClusterStores, cluster: str) -> None:
        self._stores = stores
        self._cluster = cluster

    async def __call__(self, clock: Clock) -> MetadataStores:
        """Connect, and look whether the cluster can be joined.

        Raises:
            UnsupportedClusterError: It can't.
        """
        async with OnFailureAwait(self._stores.close):
            stores = await self._stores.metadata(clock)
            await check_cluster(stores, self._cluster)
            return stores


class ClusterLedgers:
    """The `LedgerStoreFactory` of BookKeeper."""

    def __init__(self, stores: ClusterStores) -> None:
        self._stores = stores

    async def prepare(self) -> None:
        """Nothing is needed."""

    async def __call__(
        self, metadata: MetadataStore, ledger_ids: LedgerIds, clock: Clock
    ) -> LedgerStore:
        """Connect; `metadata` is used where BookKeeper's is there."""
        del metadata
        return await self._stores.ledgers(clock, ledger_ids)
