"""The LedgerStore: append-only, fenced ledgers of entries; a seam of the design.

Everything distributed comes in here: the embedded `Bookie` implements it with a journal and entry
logs in this process, a BookKeeper client will over its wire protocol. Nothing above may assume
which. A ledger has one writer; whoever recovers it fences that writer. Entries have ids from 0
without gaps; an entry up to `last_add_confirmed` is durable and will be found by every recovery.

Appending is synchronous and costs no object an entry: the writer returns the id and reports how
far durability has come once a group, through `LedgerListener`.

Source: LedgerHandle, LedgerRecoveryOp in Apache BookKeeper.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import StorageError


@dataclass(frozen=True, slots=True)
class LedgerOptions:
    """What a ledger is created with; an embedded store keeps one copy whatever the quorums say."""

    ensemble_size: int = 1
    write_quorum_size: int = 1
    ack_quorum_size: int = 1
    password: bytes = b""
    custom_metadata: Mapping[str, bytes] = field(default_factory=dict)


class LedgerListener(Protocol):
    """Who hears about a writer's progress. Called on the loop, never from inside `append`."""

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        """All entries up to `last_add_confirmed` are durable; once a group, always growing."""

    def on_failed(self, ledger_id: int, error: StorageError) -> None:
        """Nothing beyond the confirmed entries will be confirmed through this writer any more.

        Once. `LedgerFencedError` means another owner; after any other error the ledger has to be
        recovered to learn how far it goes.
        """


class LedgerReader(ABC):
    """A ledger open for reading."""

    ledger_id: int

    @property
    @abstractmethod
    def last_add_confirmed(self) -> int:
        """Id of the last readable entry, -1 when there is none."""

    @property
    @abstractmethod
    def length_bytes(self) -> int:
        """Bytes of all entries up to the last one confirmed."""

    @property
    @abstractmethod
    def is_closed(self) -> bool:
        """Nothing will be added any more."""

    @abstractmethod
    def read_cached(
        self, first_entry_id: int, last_entry_id: int, max_bytes: int
    ) -> Sequence[EntryBytes] | None:
        """What `read` would return, if it is in memory now; else None. Never waits."""

    @abstractmethod
    async def read(
        self, first_entry_id: int, last_entry_id: int, max_bytes: int
    ) -> Sequence[EntryBytes]:
        """Entries from `first_entry_id`, in order: at least one, then while `max_bytes` allow.

        May return fewer than asked for whatever the bytes; the caller asks again.

        Raises:
            EntryNotFoundError: `first_entry_id` is past the last entry confirmed.
            CorruptDataError: What is stored fails its checksum.
            LedgerNotFoundError: The ledger was deleted meanwhile.
        """

    @abstractmethod
    async def close(self) -> None:
        """Release the handle. A writer's ledger gets closed at its last confirmed entry."""


class LedgerWriter(LedgerReader):
    """The one handle that may add to a ledger."""

    @property
    @abstractmethod
    def last_add_pushed(self) -> int:
        """Id of the last entry appended, confirmed or not."""

    @abstractmethod
    def append(self, data: bytes) -> int:
        """Queue one entry; returns its id. Durable only once the listener was told.

        Raises:
            LedgerClosedError, LedgerFencedError: Nothing was queued.
            DiskFullError: The store takes no writes now; nothing was queued.
            StorageError: An earlier append failed; nothing was queued.
        """


@dataclass(frozen=True, slots=True)
class LedgerInfo:
    """What is known about a ledger without reading its entries."""

    ledger_id: int
    is_closed: bool
    is_fenced: bool
    last_entry_id: int
    length_bytes: int
    custom_metadata: Mapping[str, bytes]


class LedgerStore(ABC):
    """Creates, opens, recovers and deletes ledgers."""

    @abstractmethod
    async def create(self, listener: LedgerListener, options: LedgerOptions) -> LedgerWriter:
        """A new, empty, durable ledger with an id never used before.

        Raises:
            DiskFullError: No writes are taken now.
            StorageError: It could not be made durable.
        """

    @abstractmethod
    async def open(self, ledger_id: int, *, password: bytes = b"") -> LedgerReader:
        """Open for reading without disturbing a writer; reads up to what is known confirmed.

        Raises:
            LedgerNotFoundError: There is none.
        """

    @abstractmethod
    async def recover(self, ledger_id: int, *, password: bytes = b"") -> LedgerReader:
        """Fence the writer if there is one, find the last entry, close the ledger, open it.

        Every entry ever confirmed is in it. Returns once the fence and the end are durable.

        Raises:
            LedgerNotFoundError: There is none.
            StorageError: The end could not be determined.
        """

    @abstractmethod
    async def delete(self, ledger_id: int) -> None:
        """Delete a ledger for good; fine if it is gone already."""

    @abstractmethod
    async def list_ledgers(self) -> Sequence[int]:
        """Ids of all ledgers, ascending."""

    @abstractmethod
    async def info(self, ledger_id: int) -> LedgerInfo:
        """State of one ledger.

        Raises:
            LedgerNotFoundError: There is none.
        """

    def figures(self) -> Mapping[str, float]:
        """What the store counts and holds now, by its own names; none unless it says so."""
        return {}

    @abstractmethod
    async def close(self) -> None:
        """Flush everything and stop. Open writers' ledgers stay open and get recovered later."""
