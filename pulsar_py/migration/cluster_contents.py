"""Reads what a cluster keeps, as `Contents`: its keys, and the ledgers that they name (edge).

BookKeeper may hold ledgers of other clusters and programs, so only those are taken that the keys
name: in lists of topics, in records of cursors, in schemas, and the compacted ledgers that cursor
ledgers name. Nothing is changed but what the next broker would do, too: ledgers that a broker left
open are recovered when they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pulsar_py.common.errors import LedgerNotFoundError, MigrationError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.ledgers.ids import LedgerIds
from pulsar_py.ledgers.store import LedgerOptions, LedgerStore
from pulsar_py.managed_ledger.cursors.format import (
    COMPACTION_CURSOR,
    NO_LEDGER,
    decode_cursor_record,
    owned_ledgers,
)
from pulsar_py.managed_ledger.log.ledger_format import decode_ledger_list
from pulsar_py.metadata import paths
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.metadata.ledger_ids import MetadataLedgerIds
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.migration.contents import Contents
from pulsar_py.migration.cursor_states import cursor_states
from pulsar_py.migration.moved_keys import ROOTS, Home, is_cursor, moved
from pulsar_py.proto.SchemaStorageFormat_pb2 import SchemaLocator

KEYS_AT_ONCE: Final = 64


async def read_cluster(
    stores: MetadataStores,
    store: LedgerStore,
    ledger_ids: LedgerIds,
    clock: Clock,
    *,
    cluster: str,
    settings: LedgerOptions,
) -> Contents:
    """All of a cluster whose brokers are stopped.

    Raises:
        MigrationError: A broker runs.
        StorageError, MetadataError: It can't be read.
    """
    await check_no_brokers(stores.local)
    keys = await read_keys(stores)
    named = set(named_by(keys))
    compactions = {
        path: value
        for path, value in keys.items()
        if path.startswith(f"{paths.MANAGED_LEDGERS}/") and path.endswith(f"/{COMPACTION_CURSOR}")
    }
    for state in (await cursor_states(compactions, store, clock, settings)).values():
        named.update(owned_ledgers(state.properties, {}))

    async def labels_of(ledger_id: int) -> Mapping[str, bytes] | None:
        try:
            return await store.custom_metadata(ledger_id)
        except LedgerNotFoundError:
            return None  # a deletion was cut short, or it is kept elsewhere (offloaded)

    in_order = sorted(named)
    found = await each_result(labels_of, in_order, at_once=KEYS_AT_ONCE)
    pairs = zip(in_order, found, strict=True)
    producers = MetadataLedgerIds(stores.local, paths.PRODUCER_NAME_PREFIX)
    try:
        next_producer_number = await producers.next()
    finally:
        await producers.close()
    return Contents(
        instance=f"cluster {cluster}",
        cluster=cluster,
        keys=moved(keys, cluster),
        ledgers={key: labels for key, labels in pairs if labels is not None},
        store=store,
        settings=settings,
        next_ledger_id=await ledger_ids.next(),
        next_producer_number=next_producer_number,
    )


async def check_no_brokers(local: MetadataStore) -> None:
    """Return if no broker is registered.

    Raises:
        MigrationError: One is.
        MetadataError: That can't be read.
    """
    if running := await local.children(paths.BROKERS):
        raise MigrationError(
            f"brokers work in the cluster: {', '.join(running)}. Stop them first; a killed one is "
            "gone when its session ends"
        )


async def read_keys(stores: MetadataStores) -> dict[str, bytes]:
    """All keys that are moved, from the store that each is in; parents without a value are not."""
    keys: dict[str, bytes] = {}
    for root, home in ROOTS.items():
        store = stores.local if home is Home.LOCAL else stores.configuration
        level: Sequence[str] = [root]
        while level:
            values = await each_result(store.get, level, at_once=KEYS_AT_ONCE)
            for path, found in zip(level, values, strict=True):
                if found is not None and found.value and not found.is_ephemeral:
                    keys[path] = found.value
            lists = await each_result(store.children, level, at_once=KEYS_AT_ONCE)
            level = [
                f"{path}/{name}" for path, names in zip(level, lists, strict=True) for name in names
            ]
    return keys


def named_by(keys: Mapping[str, bytes]) -> Iterator[int]:
    """The ledgers that the records of topics, cursors and schemas name.

    Raises:
        CorruptDataError: One can't be read.
    """
    for path, value in keys.items():
        if path.startswith(f"{paths.SCHEMAS}/"):
            for version in SchemaLocator.FromString(value).index:
                yield version.position.ledgerId
        elif path.startswith(f"{paths.MANAGED_LEDGERS}/"):
            if is_cursor(path):
                record = decode_cursor_record(value)
                yield from owned_ledgers(record.snapshot.properties, record.cursor_properties)
                if record.cursor_ledger_id != NO_LEDGER:
                    yield record.cursor_ledger_id
            else:
                yield from (each.ledger_id for each in decode_ledger_list(value).ledgers)
