"""Sides of a move in memory: a small one with a ledger of each role, and targets that break."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pyroaring import BitMap

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import MetadataUnavailableError, StorageError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.position import Position
from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import LedgerListener, LedgerOptions, LedgerWriter
from pulsar_py.managed_ledger.log.whole_ledger import WholeLedgerWriter
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.metadata.ledger_ids import MetadataLedgerIds
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.migration.contents import Contents, MoveTarget
from pulsar_py.proto.DelayedMessageIndexBucketMetadata_pb2 import (
    SnapshotMetadata,
    SnapshotSegmentMetadata,
)
from pulsar_py.proto.DelayedMessageIndexBucketSegment_pb2 import DelayedIndex, SnapshotSegment
from pulsar_py.proto.MLDataFormats_pb2 import ManagedCursorInfo, ManagedLedgerInfo, PositionInfo
from pulsar_py.proto.SchemaStorageFormat_pb2 import SchemaEntry, SchemaLocator
from pulsar_py.server.compaction.record_format import encode_compacted_to, encode_record
from pulsar_py.storage.bookie import Bookie
from pulsar_py.storage.shared.settings import BookieSettings

NAME: Final = "t/n/persistent/topic"
TOPIC: Final = f"/managed-ledgers/{NAME}"
DATA, CURSOR, COMPACTED, BUCKET, SCHEMA, NAMES, COMPACTION, LAST = 3, 5, 6, 7, 8, 9, 10, 11
"""Ids of the ledgers of `entries`."""
PERMISSIONS: Final = (
    '{"namespaceAuthentication":{"reader":["consume"]},'
    '"topicAuthentication":{"persistent://t/n/topic":{"writer":["produce"]}},'
    '"subscriptionAuthentication":{"sub":["reader"]}}'
)
"""What roles of tokens may do in the namespace, as it is stored."""
BUCKET_KEY: Final = f"#pulsar.internal.delayed.bucket_{DATA}_{LAST}"


def all_labels(cluster: str = "small") -> dict[int, dict[str, bytes]]:
    """The labels of one ledger of each role."""
    to = encode_compacted_to(Position(DATA, 1), -1)
    topic = "persistent://t/n/topic"
    return {
        DATA: labels.managed_ledger(cluster, NAME),
        CURSOR: labels.cursor(cluster, NAME, "sub"),
        COMPACTED: labels.compacted_ledger(cluster, topic, to),
        BUCKET: labels.delayed_index_bucket(cluster, topic, "sub", BUCKET_KEY),
        SCHEMA: labels.schema(cluster, "t/n/topic"),
        NAMES: labels.sequence_ids(cluster, NAME),
        COMPACTION: labels.cursor(cluster, NAME, "__compaction"),
        LAST: labels.managed_ledger(cluster, NAME),
    }


def entries(by: int = 0) -> dict[int, list[bytes]]:
    """What is in them; ids of ledgers are greater by `by`."""
    data, last = DATA + by, LAST + by
    position = PositionInfo(ledgerId=data, entryId=0)
    hole = position.individualDeletedMessages.add()
    hole.lowerEndpoint.ledgerId = hole.upperEndpoint.ledgerId = last
    hole.lowerEndpoint.entryId, hole.upperEndpoint.entryId = -1, 0
    names = PositionInfo(ledgerId=last, entryId=0)
    names.properties.add(name="CompactedTopicLedger", value=7)  # a producer's name
    compaction = PositionInfo(ledgerId=data, entryId=1)
    compaction.properties.add(name="CompactedTopicLedger", value=COMPACTED + by)
    schema = SchemaEntry(schema_data=b"definition")
    earlier = schema.index.add(version=0, hash=b"h")
    earlier.position.ledgerId, earlier.position.entryId = SCHEMA + by, 0
    bitmaps = {data: BitMap([1]).serialize(), last: BitMap([0]).serialize()}
    segment = SnapshotSegmentMetadata(
        delayed_index_bit_map=bitmaps, max_schedule_timestamp=2, min_schedule_timestamp=1
    )
    indexes = [
        DelayedIndex(timestamp=1, ledger_id=data, entry_id=1),
        DelayedIndex(timestamp=2, ledger_id=last, entry_id=0),
    ]
    return {
        data: [b"one", b"two"],
        CURSOR + by: [b"\xff", position.SerializeToString()],
        COMPACTED + by: [encode_record(Position(data, 1), -1, b"message")],
        BUCKET + by: [
            SnapshotMetadata(metadata_list=[segment]).SerializeToString(deterministic=True),
            SnapshotSegment(indexes=indexes).SerializeToString(),
        ],
        SCHEMA + by: [schema.SerializeToString()],
        NAMES + by: [names.SerializeToString()],
        COMPACTION + by: [compaction.SerializeToString()],
        last: [b"three" * 100],
    }


def keys(by: int = 0, cluster: str = "small") -> dict[str, bytes]:
    """The records of tenant, namespace, topic, cursors and schema; ids are greater by `by`."""
    topic = ManagedLedgerInfo()
    topic.ledgerInfo.add(ledgerId=DATA + by, entries=2, size=6, timestamp=1)
    topic.ledgerInfo.add(ledgerId=LAST + by)
    topic.terminatedPosition.ledgerId, topic.terminatedPosition.entryId = LAST + by, 0
    cursor = ManagedCursorInfo(
        cursorsLedgerId=CURSOR + by, markDeleteLedgerId=DATA + by, markDeleteEntryId=0
    )
    for name, text in (
        (f"#pulsar.internal.delayed.bucket_{DATA + by}_{LAST + by}", str(BUCKET + by)),
        ("#pulsar.internal.pulsar-py.sequence-id-ledgers", str(NAMES + by)),
        ("3", "3"),  # a user's
    ):
        cursor.cursorProperties.add(name=name, value=text)
    compaction = ManagedCursorInfo(
        cursorsLedgerId=COMPACTION + by, markDeleteLedgerId=DATA + by, markDeleteEntryId=1
    )
    compaction.properties.add(name="CompactedTopicLedger", value=COMPACTED + by)
    locator = SchemaLocator()
    version = locator.index.add(version=0, hash=b"h")
    version.position.ledgerId, version.position.entryId = SCHEMA + by, 0
    locator.info.CopyFrom(version)
    lists = f'["{cluster}"]'
    return {
        "/admin/policies/t": f'{{"adminRoles":["owner"],"allowedClusters":{lists}}}'.encode(),
        "/admin/policies/t/n": (
            f'{{"auth_policies":{PERMISSIONS},"replication_clusters":{lists}}}'.encode()
        ),
        TOPIC: topic.SerializeToString(),
        f"{TOPIC}/__compaction": compaction.SerializeToString(),
        f"{TOPIC}/sub": cursor.SerializeToString(),
        "/schemas/t/n/topic": locator.SerializeToString(),
    }


class Listener:
    """Of a writer whose confirmations nobody waits for."""

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None: ...

    def on_failed(self, ledger_id: int, error: StorageError) -> None: ...


async def volatile_bookie() -> Bookie:
    """A ledger store in memory."""
    return await Bookie.start(
        MemoryDisk(),
        clock=SystemClock(),
        ledger_ids=MetadataLedgerIds(MemoryMetadataStore(SystemClock())),
        settings=BookieSettings(is_volatile=True),
    )


async def filled_bookie(
    held: Mapping[int, Iterable[bytes]], own: Mapping[int, Mapping[str, bytes]]
) -> Bookie:
    """A ledger store with these entries; ledgers are open."""
    bookie = await volatile_bookie()
    for ledger_id, datas in held.items():
        await write(bookie, ledger_id, datas, own[ledger_id])
    return bookie


async def write(
    store: Bookie, ledger_id: int, datas: Iterable[bytes], own: Mapping[str, bytes]
) -> WholeLedgerWriter:
    """Leave a ledger with these entries open."""
    writer = WholeLedgerWriter(store, SystemClock())
    options = LedgerOptions(custom_metadata=own)
    writer.take(await store.create_chosen(ledger_id, writer, options))
    for data in datas:
        await writer.append(data)
    await writer.flush()
    return writer


async def small_contents() -> Contents:
    """A side with one topic, and a ledger of each role."""
    return Contents(
        instance="instance-1",
        cluster="small",
        keys=keys(),
        ledgers=all_labels(),
        store=await filled_bookie(entries(), all_labels()),
        settings=LedgerOptions(),
        next_ledger_id=LAST + 5,
        next_producer_number=4,
    )


class Interruption:
    """Ends a target's life after a number of changes: all calls fail from then on."""

    def __init__(self) -> None:
        self.left: int | None = None  # None: never
        self.is_change_made = False  # the last one, whose caller gets an error

    def step(self) -> bool:
        """Whether a change is made; else, or afterwards, the caller gets an error."""
        if self.left is None:
            return True
        self.left -= 1
        return self.left > 0 or (self.left == 0 and self.is_change_made)

    @property
    def is_over(self) -> bool:
        return self.left is not None and self.left <= 0


class BreakingMetadata(MemoryMetadataStore):
    """Metadata whose changes end with the interruption."""

    def __init__(self, interruption: Interruption) -> None:
        super().__init__(SystemClock())
        self._interruption = interruption

    async def put(self, path: str, value: bytes, **options: Any) -> int:  # Any: as the store's
        is_made = self._interruption.step()
        version = await super().put(path, value, **options) if is_made else 0
        if self._interruption.is_over:
            raise MetadataUnavailableError("interrupted")
        return version


class BreakingLedgers:
    """Breaks a bookie's chosen ledgers with the interruption; everything else is the bookie's."""

    def __init__(self, bookie: Bookie, interruption: Interruption) -> None:
        self._bookie = bookie
        self._interruption = interruption

    def __getattr__(self, name: str) -> Any:  # Any: whatever a bookie has
        return getattr(self._bookie, name)

    async def create_chosen(
        self, ledger_id: int, listener: LedgerListener, options: LedgerOptions
    ) -> LedgerWriter:
        if not self._interruption.step():
            raise StorageError("interrupted")
        writer = await self._bookie.create_chosen(ledger_id, listener, options)
        if self._interruption.is_over:
            raise StorageError("interrupted")
        append = writer.append

        def breaking(data: Any) -> int:  # Any: an entry that may be lent
            if not self._interruption.step():
                raise StorageError("interrupted")
            return append(data)

        writer.append = breaking  # type: ignore[method-assign]
        return writer


def target_of(
    metadata: MemoryMetadataStore,
    store: Any,  # Any: a bookie, or one that breaks
    cluster: str = "large",
) -> MoveTarget:
    """A target of these stores."""
    return MoveTarget(
        metadata=MetadataStores(local=metadata, configuration=metadata),
        store=store,
        ledger_ids=MetadataLedgerIds(metadata),
        cluster=cluster,
        settings=LedgerOptions(),
        address="the target",
    )


async def stored(metadata: MemoryMetadataStore, paths: Iterable[str]) -> dict[str, bytes]:
    """The values of these keys."""
    found = {path: await metadata.get(path) for path in paths}
    return {path: each.value for path, each in found.items() if each is not None}


async def read(store: Any, ledger_id: int) -> Sequence[bytes]:  # Any: as above
    """All entries of a ledger."""
    reader = await store.open(ledger_id)
    found: list[bytes] = []
    while len(found) <= reader.last_add_confirmed:
        some = await reader.read(len(found), reader.last_add_confirmed, 1 << 20)
        found += map(bytes, some)
    return found
