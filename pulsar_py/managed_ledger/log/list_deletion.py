"""`remove_marked`: removes a marked list and its cursors' records, nothing of what follows (edge).

A deletion is many changes, and the process may stand still between any two of them. Meanwhile
another owner may have ended the deletion and created the managed ledger again, under the same
paths. So each record is removed with the version under which it was read, and only if the list was
still the marked one after that: then what was read is not the next one's. `check_owner` comes right
before each change, so that a change of a former owner is not even sent.

The list goes last. So a deletion that is cut short leaves a marked list, and can be ended by
whoever opens it next.

Source: asyncRemoveManagedLedger of MetaStoreImpl in Pulsar's managed-ledger, which relies on nobody
else being there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pulsar_py.common.errors import (
    ManagedLedgerFencedError,
    MetadataNotEmptyError,
    MetadataUnavailableError,
)
from pulsar_py.common.loops.concurrently import concurrently, each_result
from pulsar_py.managed_ledger.log.owned_record import OwnedRecord
from pulsar_py.metadata.store import MetadataStore

RECORDS_AT_ONCE: Final = 16
"""Records of cursors that are read, and removed, at the same time."""
ATTEMPTS_COUNT: Final = 10
"""How often records are read that change at the same time, before giving up."""


async def remove_marked(
    metadata: MetadataStore, marked: OwnedRecord, check_owner: Callable[[], None]
) -> None:
    """Return when the list, and the records of cursors that were below it, are gone.

    `marked` is the list as it is stored, which says that it is being deleted. `check_owner` is
    called before each change, and raises where this process may not be the owner.

    Raises:
        ManagedLedgerFencedError: Another owner has it, says `check_owner`.
        MetadataError: Some of it may still be there; opening it removes the rest.
    """
    for _ in range(ATTEMPTS_COUNT):
        doomed = await _records_of_cursors(metadata, marked.path, check_owner)
        try:
            await marked.confirm()
        except ManagedLedgerFencedError:
            return  # somebody else ended the deletion; what is there now is another one's
        check_owner()
        if not await _remove(doomed):
            continue
        try:
            await marked.delete()
        except ManagedLedgerFencedError:
            check_owner()
        except MetadataNotEmptyError:
            continue  # a cursor's record, whose creation had no answer, was made late
        return
    raise MetadataUnavailableError(
        f"{marked.path}: the records of cursors changed {ATTEMPTS_COUNT} times while they were "
        "being deleted; the next opening removes the rest"
    )


async def _records_of_cursors(
    metadata: MetadataStore, path: str, check_owner: Callable[[], None]
) -> list[OwnedRecord]:
    await metadata.sync(path)

    async def read(name: str) -> OwnedRecord | None:
        record = OwnedRecord(metadata, f"{path}/{name}", check_owner=check_owner)
        found = await metadata.get(record.path)
        if found is None:
            return None
        record.found(found)
        return record

    names = await metadata.children(path)
    records = await each_result(read, names, at_once=RECORDS_AT_ONCE)
    return [each for each in records if each is not None]


async def _remove(records: list[OwnedRecord]) -> bool:
    """Remove records; False if one was changed since it was read."""
    results = await concurrently(OwnedRecord.delete, records, at_once=RECORDS_AT_ONCE)
    errors = [each for each in results if isinstance(each, Exception)]
    for error in errors:
        if not isinstance(error, ManagedLedgerFencedError):
            raise error
    return not errors
