"""The work of `pulsar-py ledger`: looks at ledgers on BookKeeper (edge).

Nothing is fenced, changed or deleted. How far an open ledger goes is asked of its bookies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from pulsar_py.bookkeeper.metadata.ledger_metadata import LedgerMetadata
from pulsar_py.bookkeeper.metadata.ledger_records import LedgerRecords
from pulsar_py.cli.places import ClusterClients, Row, show, show_one
from pulsar_py.common.errors import LedgerNotFoundError, PulsarError, StorageError
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import DigestType
from pulsar_py.managed_ledger.opener import ManagedLedgerOpener
from pulsar_py.server.schema_registry import SchemaRegistry

RECORDS_AT_ONCE = 64
_READ_BYTES = 1024 * 1024
_NAMES = ("ledger", "state", "last_entry", "bytes", "component", "cluster", "owner")
_OWNERS = ("pulsar/managed-ledger", "pulsar/schemaId", "pulsar/compactedTopic")
_DIGESTS = {DigestType.HMAC: "MAC"}


async def list_all(cluster: ClusterClients, output: str) -> int:
    """Print all ledgers; returns the exit code."""
    records = _records(cluster)
    await records.check_layout()
    rows: list[Row] = []
    async for page in records.ids():
        rows += await _rows(records, page)
    show(rows, _NAMES, output)
    return 0


async def info(cluster: ClusterClients, ledger_id: int, output: str) -> int:
    """Print one ledger's metadata, and how far it goes; returns the exit code."""
    records = _records(cluster)
    recorded = await records.read(ledger_id)
    metadata = recorded.metadata
    end: Row = {"last_entry": metadata.last_entry_id, "bytes": metadata.length_bytes}
    if not metadata.is_closed:
        end = await _end_of_open(cluster, ledger_id, metadata)
    show_one(
        {
            "ledger": ledger_id,
            "state": metadata.status.name,
            **end,
            "ensemble_size": metadata.ensemble_size,
            "write_quorum": metadata.write_quorum_size,
            "ack_quorum": metadata.ack_quorum_size,
            "digest": _DIGESTS.get(metadata.digest_type, metadata.digest_type.name),
            "metadata_version": recorded.version,
            "labels": _readable(metadata.custom_metadata),
            "ensembles": {
                str(segment.first_entry_id): list(segment.bookie_ids)
                for segment in metadata.segments
            }
            if output == "json"
            else [
                f"{segment.first_entry_id}:[{','.join(segment.bookie_ids)}]"
                for segment in metadata.segments
            ],
        },
        output,
    )
    return 0


async def _end_of_open(cluster: ClusterClients, ledger_id: int, metadata: LedgerMetadata) -> Row:
    """What its bookies say; without enough of them it is unknown."""
    try:
        async with cluster.ledgers() as store:
            password = cluster.password if metadata.password is None else metadata.password
            reader = await store.open(ledger_id, password=password)
            end = {"last_entry": reader.last_add_confirmed, "bytes": reader.length_bytes}
            await reader.close()
            return end
    except StorageError as error:
        return {"last_entry": None, "bytes": None, "problem": str(error)}


async def read(
    cluster: ClusterClients,
    ledger_id: int,
    entries: tuple[int, int | None],
    shown_bytes: int,
    output: str,
) -> int:
    """Print entries from the first to the last of `entries`; returns the exit code."""
    first, last = entries
    async with cluster.ledgers() as store:
        metadata = (await _records(cluster).read(ledger_id)).metadata
        password = cluster.password if metadata.password is None else metadata.password
        reader = await store.open(ledger_id, password=password)
        end = reader.last_add_confirmed
        last = end if last is None else min(last, end)
        rows: list[Row] = []
        while first <= last:
            found = await reader.read(first, last, _READ_BYTES)
            rows += [_entry(first + at, data, shown_bytes) for at, data in enumerate(found)]
            first += len(found)
        await reader.close()
        show(rows, ("entry", "bytes", "data"), output)
    return 0


def _entry(entry_id: int, data: bytes | memoryview, shown_bytes: int) -> Row:
    return {"entry": entry_id, "bytes": len(data), "data": bytes(data[:shown_bytes]).hex()}


async def find_orphans(cluster: ClusterClients, output: str) -> int:
    """Print ledgers of Pulsar's that nothing names; returns the exit code."""
    async with cluster.ledgers() as store:
        records = _records(cluster)
        # The ledgers first: those created and named from here on are not among them.
        left: list[int] = []
        async for page in records.ids():
            left += page
        local = cluster.metadata.local
        opener = ManagedLedgerOpener(
            store,
            local,
            cluster.clock,
            chance=Random(0),  # noqa: S311 - nothing is opened
        )
        schemas = SchemaRegistry(local, store, cluster.clock)
        try:
            named = await opener.named_ledgers() | await schemas.named_ledgers()
        finally:
            await opener.close()
            await schemas.close()
        rows = await _rows(records, [ledger_id for ledger_id in left if ledger_id not in named])
        show([row for row in rows if row["application"] == "pulsar"], _NAMES, output)
    return 0


def _records(cluster: ClusterClients) -> LedgerRecords:
    return LedgerRecords(cluster.bookkeeper_metadata, cluster.ledgers_root)


async def _rows(records: LedgerRecords, ledger_ids: Sequence[int]) -> list[Row]:
    """A row for each that is still there."""

    async def row(ledger_id: int) -> Row | None:
        try:
            metadata = (await records.read(ledger_id)).metadata
        except LedgerNotFoundError:
            return None
        except PulsarError as error:
            return {**dict.fromkeys(_NAMES), "ledger": ledger_id, "state": str(error)}
        known = _readable(metadata.custom_metadata)
        owner = next((known[name] for name in _OWNERS if name in known), None)
        if owner is not None and "pulsar/cursor" in known:
            owner = f"{owner}/{known['pulsar/cursor']}"
        return {
            "ledger": ledger_id,
            "state": metadata.status.name,
            "last_entry": metadata.last_entry_id if metadata.is_closed else None,
            "bytes": metadata.length_bytes if metadata.is_closed else None,
            "application": known.get(labels.APPLICATION),
            "component": known.get(labels.COMPONENT),
            "cluster": known.get(labels.CLUSTER),
            "owner": owner,
        }

    found = await each_result(row, ledger_ids, at_once=RECORDS_AT_ONCE)
    return [each for each in found if each is not None]


def _readable(custom_metadata: Mapping[str, bytes]) -> dict[str, str]:
    return {name: value.decode(errors="replace") for name, value in custom_metadata.items()}
