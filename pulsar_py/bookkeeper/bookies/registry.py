"""`BookieRegistry`: the bookies that are registered, their addresses and racks (edge).

Bookies register below the cluster's root: ephemeral keys `available/ID`, or `available/readonly/ID`
while they only serve reads. Their values name the address, which need not be what the id looks
like; a bookie that is not registered is looked for at the `host:port` of its id.

What was listed last is remembered, for who can't wait. A rack map that can't be read counts as the
last one that could be.

Source: RegistrationClient, BookieServiceInfoFormat, DefaultBookieAddressResolver in Apache
BookKeeper.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from google.protobuf.message import DecodeError

from pulsar_py.bookkeeper.metadata.ledger_paths import AVAILABLE, READ_ONLY
from pulsar_py.bookkeeper.placement.rack_map import RackMap
from pulsar_py.common.errors import CorruptDataError, MetadataUnavailableError, StorageError
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MetadataStore, Notification
from pulsar_py.proto.DataFormats_pb2 import BookieServiceInfoFormat

logger = logging.getLogger(__name__)

_PROTOCOL: Final = "bookie-rpc"


class BookieRegistry:
    """The bookies of one cluster; owned by the store."""

    def __init__(
        self, metadata: MetadataStore, root: str, racks_metadata: MetadataStore | None = None
    ) -> None:
        """Begins to watch; until `close`.

        `racks_metadata` has the map of racks, which is the brokers' and not BookKeeper's; None: it
        is beside the bookies.
        """
        self._metadata = metadata
        self._available = f"{root}/{AVAILABLE}"
        self._racks_metadata = racks_metadata or metadata
        self.known_writable: tuple[str, ...] = ()
        """As they were listed last."""
        self.known_read_only: tuple[str, ...] = ()
        """As they were listed last."""
        self.known_racks = RackMap()
        """As they were read last."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when the list of bookies, or their racks, may have changed."""
        self._is_listed = False
        self._has_racks = False
        self._changes_count = 0
        self._stop_watching = (
            metadata.watch(self._available, self._on_change),
            self._racks_metadata.watch(paths.BOOKIE_RACKS, self._on_racks_change),
        )

    def _on_change(self, _: Notification) -> None:
        self._is_listed = False
        self._changes_count += 1
        self.on_change()

    def _on_racks_change(self, _: Notification) -> None:
        self._has_racks = False
        self._changes_count += 1
        self.on_change()

    async def writable(self) -> tuple[str, ...]:
        """Ids of the bookies that are registered to take entries, sorted.

        One that died is among them until its session has ended.

        Raises:
            MetadataError: They can't be asked for.
        """
        if self._is_listed:
            return self.known_writable
        changes_count = self._changes_count
        names = await self._metadata.children(self._available)
        read_only = await self._metadata.children(f"{self._available}/{READ_ONLY}")
        self.known_writable = tuple(sorted(name for name in names if name != READ_ONLY))
        self.known_read_only = tuple(sorted(read_only))
        self._is_listed = changes_count == self._changes_count
        return self.known_writable

    async def racks(self) -> RackMap:
        """The rack map as it is now.

        Raises:
            MetadataError: It can't be asked for.
        """
        if self._has_racks:
            return self.known_racks
        changes_count = self._changes_count
        found = await self._racks_metadata.get(paths.BOOKIE_RACKS)
        try:
            value = b"" if found is None else found.value
            self.known_racks = RackMap.parse(paths.BOOKIE_RACKS, value)
        except CorruptDataError as error:
            logger.warning("rack map can't be read, the last one counts", extra={"error": error})
        self._has_racks = changes_count == self._changes_count
        return self.known_racks

    async def address(self, bookie_id: str) -> tuple[str, int]:
        """The address of a bookie.

        Raises:
            StorageError: It is not registered, and its id is no address.
        """
        value = b""
        for path in (
            f"{self._available}/{bookie_id}",
            f"{self._available}/{READ_ONLY}/{bookie_id}",
        ):
            try:
                found = await self._metadata.get(path)
            except MetadataUnavailableError:
                break  # its id may do
            if found is not None:
                value = found.value
                break
        return bookie_address(bookie_id, value)

    def close(self) -> None:
        """End the watches."""
        for stop in self._stop_watching:
            stop()


def bookie_address(bookie_id: str, value: bytes) -> tuple[str, int]:
    """The address in the value of a registration, empty if it has none.

    Raises:
        StorageError: Neither the value nor the id says.
    """
    try:
        endpoints = BookieServiceInfoFormat.FromString(value).endpoints
    except DecodeError as error:
        raise StorageError(f"bookie {bookie_id}: its registration can't be read") from error
    for endpoint in endpoints:
        if endpoint.protocol == _PROTOCOL:
            return endpoint.host, endpoint.port
    host, _, port = bookie_id.rpartition(":")
    if not (host and port.isascii() and port.isdigit()):
        raise StorageError(f"bookie {bookie_id}: it is not registered, and its id is no host:port")
    return host, int(port)
