"""Reads and writes the progress of a move into these stores, in the target's metadata (edge).

`pulsar-py migrate` moves all of a broker into another pair of stores. While it does, the key

    /pulsar_py/migration    JSON: format, source, fingerprint, cluster, ledger_id_offset, existing,
                            is_new, verified_through, state

says what comes from where, so that it can go on where it was stopped; no broker of ours starts
before its state is `done`. The key stays, so that a second call knows that nothing is left to do.

Third-party packages it may import: msgspec.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pulsar_py.common.errors import FormatVersionError, MigrationError
from pulsar_py.metadata.store import MetadataStore

PATH: Final = "/pulsar_py/migration"
FORMAT: Final = 1

MOVING: Final = "moving"
DONE: Final = "done"


class MoveProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The stored progress of one move."""

    format: int = FORMAT
    source: str
    """The instance that everything comes from."""
    fingerprint: str
    """Of its metadata and the ids of its ledgers, as they were."""
    cluster: str
    """The own cluster's name in the source."""
    ledger_id_offset: int = 0
    """By which ids of ledgers are greater here; 0: they are the same."""
    existing: str = "refuse"
    """What happens to policies that were here and differ."""
    is_new: bool = True
    """Whether there were no ledgers here before."""
    verified_through: int = 0
    """All ledgers of the source up to this id are here, and were compared."""
    state: str = MOVING

    def encode(self) -> bytes:
        """The stored form."""
        return msgspec.json.encode(self)


async def read_progress(metadata: MetadataStore) -> MoveProgress | None:
    """What is written down; None if nothing was ever moved into this store.

    Raises:
        FormatVersionError: It is of another version.
        MigrationError: It can't be read.
        MetadataError: It can't be read.
    """
    found = await metadata.get(PATH)
    if found is None or not found.value:
        return None
    try:
        version = msgspec.json.decode(found.value, type=_Versioned).format
        if version != FORMAT:
            raise FormatVersionError(PATH, "migration", version, FORMAT)
        return msgspec.json.decode(found.value, type=MoveProgress)
    except msgspec.DecodeError as error:  # it includes what does not fit the type
        raise MigrationError(f"{PATH} can't be read: {error}") from error


class _Versioned(msgspec.Struct):
    format: int


async def check_no_move(metadata: MetadataStore) -> None:
    """Return if nothing is being moved into this store.

    Raises:
        MigrationError: A move was begun and has not ended.
        MetadataError: That can't be read.
    """
    progress = await read_progress(metadata)
    if progress is not None and progress.state != DONE:
        raise MigrationError(
            f"{PATH}: moving instance {progress.source} into this metadata store has not ended, so "
            "no broker starts here: run the same `pulsar-py migrate` again, it goes on where it was"
        )
