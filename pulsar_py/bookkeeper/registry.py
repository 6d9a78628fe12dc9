"""BookieRegistry: which bookies take entries, and where they listen (edge).

Bookies register below the cluster's root: ephemeral keys `available/ID`, or `available/readonly/ID`
while they only serve reads. Their values name the address, which need not be what the id looks
like; a bookie that is not registered is looked for at the `host:port` of its id.

Source: RegistrationClient, BookieServiceInfoFormat, DefaultBookieAddressResolver in Apache
BookKeeper.
"""

from __future__ import annotations

from typing import Final

from google.protobuf.message import DecodeError

from pulsar_py.bookkeeper.ledger_paths import AVAILABLE, READ_ONLY
from pulsar_py.common.errors import MetadataUnavailableError, StorageError
from pulsar_py.metadata.store import MetadataStore, Notification
from pulsar_py.proto.DataFormats_pb2 import BookieServiceInfoFormat

_PROTOCOL: Final = "bookie-rpc"


class BookieRegistry:
    """The bookies of one cluster; owned by the store."""

    def __init__(self, metadata: MetadataStore, root: str) -> None:
        """Begins to watch; until `close`."""
        self._metadata = metadata
        self._available = f"{root}/{AVAILABLE}"
        self._writable: tuple[str, ...] | None = None  # None: to be asked for
        self._changes_count = 0
        self._stop_watching = metadata.watch(self._available, self._on_change)

    def _on_change(self, _: Notification) -> None:
        self._writable = None
        self._changes_count += 1

    async def writable(self) -> tuple[str, ...]:
        """Ids of the bookies that are registered to take entries, sorted.

        One that died is among them until its session has ended.

        Raises:
            MetadataError: They can't be asked for.
        """
        if self._writable is not None:
            return self._writable
        changes_count = self._changes_count
        names = await self._metadata.children(self._available)
        found = tuple(sorted(name for name in names if name != READ_ONLY))
        if changes_count == self._changes_count:
            self._writable = found
        return found

    async def address(self, bookie_id: str) -> tuple[str, int]:
        """Where a bookie listens.

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
        """End the watch."""
        self._stop_watching()


def bookie_address(bookie_id: str, value: bytes) -> tuple[str, int]:
    """Where a bookie listens by the value of its registration, empty where there is none.

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
