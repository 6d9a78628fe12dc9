"""`LedgerStore`: the interface to append-only, fenced ledgers of entries.

The embedded `Bookie` implements it with a journal and entry logs in this process, the package
`bookkeeper` with a client of Apache BookKeeper, and `pulsar_py.testing` with a simulated network
that loses and delays; callers may not assume which one they have. The contract is what a quorum
over a network can keep, and the embedded engine keeps it too:

- A ledger has one writer. Recovering the ledger fences that writer, which learns of it *late*: from
  a failed append, perhaps never while it is idle; a store in this process may report it at once.
  Being fenced does not mean that another owner has the topic: repair of a lost replica fences, too.
- Entries have ids from 0 without gaps. One up to `last_add_confirmed` is durable and every recovery
  finds it. One beyond may be found, or not; once a recovery has answered, that is decided.
- A handle on a ledger that another handle writes may lag behind: ask for its end with
  `read_last_add_confirmed`.
- Ledger ids grow: an id is greater than every id given before, by whatever process of the cluster.
- Every wait ends: within `limits.answer_timeout_seconds` an append is confirmed or failed, and a
  call returns or raises. Until then the store itself repeats requests that the network lost.
- Deleting removes the ledger's metadata first: open handles may read and append for a while.

Appending is synchronous and costs no object an entry: the writer returns the id and reports how far
durability has come at most once a turn of the loop, through `LedgerListener`.

Source: LedgerHandle, LedgerRecoveryOp, BookKeeper in Apache BookKeeper's client.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from enum import Enum
from typing import ClassVar, Protocol, TypeAlias

from msgspec import Struct, field

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import StorageError

LentEntry: TypeAlias = EntryBytes | tuple[EntryBytes, ...]
"""One entry to append: its bytes, or the pieces that follow each other in it.

The caller lends the memory: it must not change until the entry is confirmed or failed, or the
ledger is closed. `bytes`, and memory behind a read-only view, never change while there is a
reference to them, so a store may keep those for longer.
"""


class DigestType(Enum):
    """The checksum or MAC of an entry in a networked store; values as in BookKeeper's metadata."""

    CRC32 = 1
    HMAC = 2
    CRC32C = 3
    DUMMY = 4


class LedgerOptions(Struct, frozen=True):
    """The options of a new ledger; an embedded store keeps one copy whatever the quorums say.

    `custom_metadata` are its labels (`pulsar_py.ledgers.labels`).
    """

    ensemble_size: int = 1
    write_quorum_size: int = 1
    ack_quorum_size: int = 1
    digest_type: DigestType = DigestType.CRC32C
    password: bytes = b""
    custom_metadata: Mapping[str, bytes] = field(default_factory=dict)


class StoreLimits(Struct, frozen=True, kw_only=True):
    """The bounds a store works within."""

    max_entry_bytes: int
    """The largest entry; a larger one is refused with EntryTooBigError."""
    max_pinned_bytes: int
    """Memory that unanswered appends may hold. A lent view counts as the whole buffer that it keeps
    alive. Beyond this appends are refused with StoreBusyError."""
    answer_timeout_seconds: float
    """The time after which an unanswered append has failed, and a call raises."""


class LedgerListener(Protocol):
    """The owner of a writer, as the store calls it: on the loop, never from inside `append`."""

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        """All entries up to `last_add_confirmed` are durable; at most once a turn, always growing.

        Those entries' buffers are not lent any more.
        """

    def on_failed(self, ledger_id: int, error: StorageError) -> None:
        """Nothing beyond the confirmed entries will be confirmed through this writer any more.

        It is called once. `LedgerFencedError`: the ledger was recovered through another handle.
        `LedgerNotFoundError`: it was deleted. After any error the ledger has to be recovered to
        learn its end: any part of the unconfirmed entries may be stored.
        """


class LedgerReader(ABC):
    """A ledger open for reading."""

    ledger_id: int

    @property
    @abstractmethod
    def last_add_confirmed(self) -> int:
        """Id of the last entry that this handle knows to be confirmed, -1 when there is none.

        It is exact for a closed ledger and for the writer itself; for a ledger that another handle
        writes it is the value last received.
        """

    @abstractmethod
    async def read_last_add_confirmed(self) -> int:
        """Ask the store for the last confirmed entry; returns its id, -1 for none.

        A store with replicas may answer with an earlier entry than its writer knows: they learn
        that an entry is confirmed from the next one.

        Raises:
            StoreUnavailableError: No answer came in time.
            LedgerNotFoundError: The ledger was deleted, and that is known.
        """

    @property
    @abstractmethod
    def length_bytes(self) -> int:
        """Bytes of all entries up to `last_add_confirmed`."""

    @property
    @abstractmethod
    def is_closed(self) -> bool:
        """Whether this handle knows that nothing will be added any more."""

    @abstractmethod
    def read_cached(
        self, first_entry_id: int, last_entry_id: int, max_bytes: int
    ) -> Sequence[EntryBytes] | None:
        """The entries that `read` would return, if they are in memory; else None. Never waits."""

    @abstractmethod
    async def read(
        self, first_entry_id: int, last_entry_id: int, max_bytes: int
    ) -> Sequence[EntryBytes]:
        """Entries from `first_entry_id`, in order: at least one, then while `max_bytes` allow.

        A store may return fewer entries than `max_bytes` allow, because of how much it fetches at
        once or reads ahead; the caller then calls again.

        Raises:
            EntryNotFoundError: `first_entry_id` is past the last entry known to be confirmed.
            CorruptDataError: No replica of what is stored passes its checksum.
            LedgerNotFoundError: The ledger was deleted, and that is known.
            StoreUnavailableError: It can't be read now; trying again later may help.
        """

    @abstractmethod
    async def close(self) -> None:
        """Release the handle; `LedgerWriter.close` says what it does for a writer."""


class LedgerWriter(LedgerReader):
    """The one handle that may add to a ledger."""

    @property
    @abstractmethod
    def last_add_pushed(self) -> int:
        """Id of the last entry appended, confirmed or not."""

    @abstractmethod
    def append(self, data: LentEntry) -> int:
        """Queue one entry; returns its id. It is durable once `on_confirmed` has reported that id.

        The memory of `data` is lent until then. A store that keeps an entry longer than that keeps
        a copy where the entry is a small part of the memory behind it.

        Raises:
            StoreUnavailableError: The store takes no writes now (its subclasses say why); nothing
                was queued and the ledger is as good as before.
            EntryTooBigError: Larger than `max_entry_bytes`; nothing was queued.
            LedgerClosedError, LedgerFencedError, LedgerNotFoundError: Nothing was queued.
            StorageError: An earlier append failed, so this ledger takes nothing more; nothing was
                queued. It is never a StoreUnavailableError, whatever that append's error was.
        """

    def append_run(self, entries: Sequence[bytes]) -> int:
        """Queue the first entries of a run, with one call; returns how many.

        Fewer than all are queued where `append` would raise for the next one, or where the store
        can't tell without looking at each: the caller passes that one to `append`.
        """
        # Hot path: one call a run; a store that can takes a run at once.
        append = self.append
        queued_count = 0
        try:
            for entry in entries:
                append(entry)
                queued_count += 1
        except StorageError:
            pass  # the next call of `append` says it again
        return queued_count

    @abstractmethod
    async def close(self) -> None:
        """End the ledger at its last confirmed entry, durably; `last_add_confirmed` is exact then.

        Entries that are unconfirmed when it is called fail with LedgerClosedError before it
        returns, except those that the store is already writing to disk, which it confirms first. A
        caller that wants all of them kept waits for their confirmation before. May be called again,
        also after an error.

        Raises:
            LedgerFencedError: The ledger was recovered through another handle, which set its end.
            LedgerNotFoundError: It was deleted.
            StorageError: Whether the end was written is unknown; recover the ledger to learn it.
        """


class LedgerInfo(Struct, frozen=True):
    """A ledger's state in the store's metadata.

    `last_entry_id` and `length_bytes` are those of a closed one, None while it is open: they would
    have to be asked of its writer or replicas.
    """

    ledger_id: int
    is_closed: bool
    last_entry_id: int | None
    length_bytes: int | None
    custom_metadata: Mapping[str, bytes]


class LedgerStore(ABC):
    """Creates, opens, recovers and deletes ledgers."""

    limits: StoreLimits
    is_shared: ClassVar[bool] = False
    """Whether other programs keep ledgers there, too."""

    @abstractmethod
    async def create(self, listener: LedgerListener, options: LedgerOptions) -> LedgerWriter:
        """A new, empty, durable ledger whose id is greater than every id given before.

        Raises:
            StoreUnavailableError: No ledger can be created now (full disk, too few bookies).
            StorageError, MetadataError: It was not created, or the outcome is unknown; a ledger
                that no metadata refers to may be left over, for the collector to delete.
        """

    @abstractmethod
    async def open(self, ledger_id: int, *, password: bytes = b"") -> LedgerReader:
        """Open for reading without fencing a writer; reads up to `last_add_confirmed`.

        Raises:
            LedgerNotFoundError: There is none.
            StoreUnavailableError: It can't be opened now.
        """

    @abstractmethod
    async def recover(self, ledger_id: int, *, password: bytes = b"") -> LedgerReader:
        """Fence the writer if there is one, find the last entry, close the ledger, open it.

        The ledger then has every entry that was ever confirmed. This returns once the fence and the
        end are durable. The former writer may learn of it later; nothing that it appends is
        confirmed any more.

        Raises:
            LedgerNotFoundError: There is none.
            StoreUnavailableError: Too few replicas answered; the ledger may be fenced.
            StorageError: The end could not be determined.
        """

    @abstractmethod
    async def delete(self, ledger_id: int) -> None:
        """Delete a ledger for good; fine if it is gone already. Open handles fail some time later.

        Raises:
            StorageError, MetadataError: It may still be there.
        """

    @abstractmethod
    def list_ledgers(self) -> AsyncIterator[Sequence[int]]:
        """Yield the ids of all ledgers in ascending pages, those of other clusters too.

        A ledger that is created or deleted meanwhile may be missing.

        Raises:
            StorageError, MetadataError: The rest can't be listed: the pages so far are not all.
        """

    @abstractmethod
    async def custom_metadata(self, ledger_id: int) -> Mapping[str, bytes]:
        """Return a ledger's labels, without reading its entries.

        Raises:
            LedgerNotFoundError: There is none.
        """

    @abstractmethod
    async def info(self, ledger_id: int) -> LedgerInfo:
        """One ledger's state in the store's metadata.

        Raises:
            LedgerNotFoundError: There is none.
        """

    async def check_takes(self, options: LedgerOptions) -> None:  # noqa: B027 - a default
        """Return if a ledger with these options could be created now; by default it can.

        Raises:
            StoreUnavailableError: None could, for example of too few bookies.
        """

    async def flush(self) -> None:  # noqa: B027 - a default
        """Move confirmed entries out of this process's memory, where the store holds them there.

        For who writes many in the background, which nobody reads soon. Nothing by default: most
        stores have them elsewhere.

        Raises:
            DiskFullError, StorageError: It can't be done now; the entries are as durable as before.
        """

    def copies_of(self, options: LedgerOptions) -> int:  # noqa: ARG002 - a default
        """How many copies of each entry a ledger with these options has; by default one."""
        return 1

    def figures(self) -> Mapping[str, float]:
        """The store's counts and sizes now, under names of its own; empty by default."""
        return {}

    def labelled_figures(self) -> Iterable[tuple[str, Mapping[str, str], float]]:
        """Figures of the store's parts: a name of its own, labels, value; none by default."""
        return ()

    @abstractmethod
    async def close(self) -> None:
        """Flush everything and stop. Ledgers with open writers stay open, to be recovered later."""
