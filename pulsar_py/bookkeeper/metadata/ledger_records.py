"""`LedgerRecords`: reads and writes ledgers' metadata in the metadata store (edge).

Every change is a compare-and-set from the state that it was decided on; where somebody else was
faster it is decided anew. A missing record is only believed after a `sync`, for reads may lag
behind: who took a ledger for deleted would drop it from its list. Errors of the metadata store
become those of a ledger store.

Source: AbstractZkLedgerManager, MetadataUpdateLoop in Apache BookKeeper.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from re import Pattern
from typing import Final

from pulsar_py.bookkeeper.metadata import ledger_metadata, ledger_paths
from pulsar_py.bookkeeper.metadata.ledger_metadata import LedgerMetadata
from pulsar_py.common.errors import (
    LedgerNotFoundError,
    MetadataBadVersionError,
    MetadataError,
    MetadataExistsError,
    MetadataUnavailableError,
    StorageError,
    StoreUnavailableError,
)
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.metadata.settling import delete_if_there, put_settled
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore, Watcher

MAX_ATTEMPTS: Final = 10
"""Others that may be faster with one change."""
LISTS_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class RecordedLedger:
    """A ledger's metadata as it was read or written."""

    metadata: LedgerMetadata
    version: int


class LedgerRecords:
    """The records below one root; owned by the store."""

    def __init__(self, metadata: MetadataStore, root: str) -> None:
        self._metadata = metadata
        self._root = root
        self._is_long = False  # all ids have long paths; known by `check_layout`

    async def check_layout(self) -> None:
        """Learn where the cluster keeps its ledgers; refuse one whose scheme is unknown.

        Raises:
            StorageError: It is not formatted, or has another layout.
        """
        path = f"{self._root}/{ledger_paths.LAYOUT}"
        with _as_storage_errors(path):
            found = await self._metadata.get(path)
        lines = [] if found is None else found.value.decode(errors="replace").split("\n")
        if lines[1:2] == [] or lines[1] not in ledger_paths.KNOWN_LAYOUTS:
            raise StorageError(
                f"{path}: BookKeeper's metadata has the layout {lines}, "
                f"expected one of {', '.join(ledger_paths.KNOWN_LAYOUTS)}"
            )
        self._is_long = lines[1] == ledger_paths.LONG_HIERARCHICAL

    def _path(self, ledger_id: int) -> str:
        return ledger_paths.ledger_path(self._root, ledger_id, is_long=self._is_long)

    def watch(self, ledger_id: int, watcher: Watcher) -> Callable[[], None]:
        """Tell of changes of one record; returns what ends that."""
        return self._metadata.watch(self._path(ledger_id), watcher)

    async def read(self, ledger_id: int, *, is_synced: bool = False) -> RecordedLedger:
        """The record; with `is_synced` as it is now, not a moment ago.

        Raises:
            LedgerNotFoundError: There is none.
            StoreUnavailableError: It can't be asked for now.
            CorruptDataError: It can't be read.
        """
        path = self._path(ledger_id)
        with _as_storage_errors(f"ledger {ledger_id}"):
            found = None if is_synced else await self._metadata.get(path)
            if found is None:
                found = await self._metadata.get_newest(path)
        if found is None or not found.value:  # an empty one is a parent, of which there is none
            raise LedgerNotFoundError(f"ledger {ledger_id} does not exist")
        return RecordedLedger(ledger_metadata.decode(path, found.value), found.version)

    async def create(self, ledger_id: int, metadata: LedgerMetadata) -> RecordedLedger | None:
        """Make the record of a new ledger; None if the id is taken.

        Raises:
            StoreUnavailableError, StorageError: It could not be made, or that is not known.
        """
        with _as_storage_errors(f"ledger {ledger_id}"):
            try:
                version = await put_settled(
                    self._metadata,
                    self._path(ledger_id),
                    ledger_metadata.encode(metadata),
                    expected_version=MUST_NOT_EXIST,
                )
            except MetadataExistsError:
                return None
        return RecordedLedger(metadata, version)

    async def change(
        self,
        ledger_id: int,
        known: RecordedLedger,
        decide: Callable[[LedgerMetadata], LedgerMetadata | None],
    ) -> RecordedLedger:
        """Replace the record by the result of `decide`; None leaves it as it is.

        It is asked again with the fresh record where somebody else was faster; what it raises is
        raised here. Returns the record as it is then.

        Raises:
            LedgerNotFoundError: It was deleted.
            StoreUnavailableError, StorageError: It was not written, or that is not known.
        """
        for _ in range(MAX_ATTEMPTS):
            metadata = decide(known.metadata)
            if metadata is None:
                return known
            try:
                with _as_storage_errors(f"ledger {ledger_id}"):
                    version = await put_settled(
                        self._metadata,
                        self._path(ledger_id),
                        ledger_metadata.encode(metadata),
                        expected_version=known.version,
                    )
                return RecordedLedger(metadata, version)
            except _ChangedMeanwhileError:
                known = await self.read(ledger_id, is_synced=True)
        raise StoreUnavailableError(
            f"ledger {ledger_id}: others changed it {MAX_ATTEMPTS} times meanwhile"
        )

    async def delete(self, ledger_id: int) -> None:
        """Delete a record; fine if there is none.

        Raises:
            StoreUnavailableError, StorageError: It may still be there.
        """
        with _as_storage_errors(f"ledger {ledger_id}"):
            await delete_if_there(self._metadata, self._path(ledger_id))

    async def ids(self) -> AsyncIterator[Sequence[int]]:
        """All ids, in ascending pages of up to ten thousand.

        Raises:
            StoreUnavailableError, StorageError: The rest can't be listed.
        """
        with _as_storage_errors(self._root):
            await self._metadata.sync(self._root)
            tops = await self._metadata.children(self._root)
        for levels_count, top in (
            (ledger_paths.SHORT_LEVELS_COUNT, ledger_paths.TOP_OF_SHORT),
            (ledger_paths.LONG_LEVELS_COUNT, ledger_paths.TOP_OF_LONG),
        ):
            for name in _matching(tops, top):
                async for page in self._below(f"{self._root}/{name}", levels_count - 2):
                    yield page

    async def _below(self, path: str, levels_count: int) -> AsyncIterator[Sequence[int]]:
        """The ids below a node of the tree of paths, which is so many levels above the last."""
        with _as_storage_errors(path):
            names = _matching(await self._metadata.children(path), ledger_paths.MIDDLE)
        if levels_count > 1:
            for name in names:
                async for page in self._below(f"{path}/{name}", levels_count - 1):
                    yield page
            return
        for first in range(0, len(names), LISTS_AT_ONCE):
            some = [f"{path}/{name}" for name in names[first : first + LISTS_AT_ONCE]]
            with _as_storage_errors(path):
                lists = await each_result(self._metadata.children, some)
            for parent, leaves in zip(some, lists, strict=True):
                found = [
                    ledger_paths.ledger_id_of(self._root, f"{parent}/{leaf}", is_long=self._is_long)
                    for leaf in sorted(leaves)
                ]
                if page := [ledger_id for ledger_id in found if ledger_id is not None]:
                    yield page


class _ChangedMeanwhileError(StorageError):
    """Another process changed the record in the meantime."""


@contextmanager
def _as_storage_errors(name: str) -> Iterator[None]:
    """Raise errors of the metadata store as those of a ledger store."""
    try:
        yield
    except MetadataBadVersionError as error:
        raise _ChangedMeanwhileError(f"{name}: {error}") from error
    except MetadataUnavailableError as error:
        raise StoreUnavailableError(f"{name}: {error}") from error
    except MetadataError as error:
        raise StorageError(f"{name}: {error}") from error


def _matching(names: Sequence[str], pattern: Pattern[str]) -> list[str]:
    return sorted(name for name in names if pattern.fullmatch(name))
