"""Stores schemas: an index in the metadata store, each definition in a ledger of its own.

    /schemas/<tenant>/<namespace>/<encoded local name>   SchemaLocator
        info   the newest IndexEntry: version, position (ledger, entry 0), SHA-256 of the definition
        index  the IndexEntries of all versions, oldest first, each with a mark (`schema_index`)
        room   zeros that Apache Pulsar skips, in large ones of the embedded store (`schema_index`)
    ledger, entry 0                                      SchemaEntry
        schema_data  a serialized SchemaInfo
        index        empty: the locator has all. Apache Pulsar repeats in each entry those before
                     it, and reads them only where the locator lacks a version, which it never does

A version exists once the locator names it: a crash between both steps leaves a ledger that no
metadata names.

Source: BookkeeperSchemaStorage in Pulsar's broker; SchemaStorageFormat.proto.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError
from msgspec.structs import replace

from pulsar_py.common.errors import (
    CorruptDataError,
    LedgerNotFoundError,
    MetadataBadVersionError,
    MetadataExistsError,
    StorageError,
    StoreUnavailableError,
)
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.names import NamespaceName, url_form_decode, url_form_encode
from pulsar_py.common.position import Position
from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import LedgerInfo, LedgerOptions, LedgerStore, LedgerWriter
from pulsar_py.metadata.settling import delete_settled, put_settled
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore
from pulsar_py.proto.PulsarPySchema_pb2 import MarkedIndexEntry
from pulsar_py.proto.SchemaStorageFormat_pb2 import SchemaEntry, SchemaLocator
from pulsar_py.server.schema_registry.definition import (
    StoredSchema,
    decode_stored,
    encode_stored,
)
from pulsar_py.server.schema_registry.schema_index import SchemaIndex, first_locator, with_room

SCHEMAS_PATH = "/schemas"
_MAX_ENTRY_BYTES = 16 * 1024 * 1024

_LOCATOR_DEPTH = 3  # tenants, namespaces, topics

NAMES_AT_ONCE = 64
"""Requests to the metadata store that are under way at the same time."""

CACHED_DEFINITIONS = 10_000
CACHED_BYTES = 16 * 1024 * 1024
"""What is kept of definitions that were read; each counts `_COST_BYTES` more than its bytes."""
_COST_BYTES = 500

WRITE_TIMEOUT_SECONDS = 60.0
"""Seconds within which a version's ledger has to be created, written and closed."""


def locator_path(schema_id: str) -> str:
    """The path of a schema id's index."""
    namespace, _, local_name = schema_id.rpartition("/")
    return f"{SCHEMAS_PATH}/{namespace}/{url_form_encode(local_name)}"


class SchemaPlace(NamedTuple):
    """Where one version is stored."""

    version: int
    position: Position


class SchemaStorage:
    """Reads and appends versions; owned by the `SchemaRegistry`."""

    def __init__(
        self,
        metadata: MetadataStore,
        ledger_store: LedgerStore,
        cluster: str = "",
        ledger_options: LedgerOptions | None = None,
    ) -> None:
        """`cluster` becomes a label of each new ledger, `ledger_options` say how it is stored."""
        self._metadata = metadata
        self._ledger_store = ledger_store
        self._cluster = cluster
        self._ledger_options = ledger_options or LedgerOptions()
        # By the ledger that holds it, the oldest first: ledgers don't change, nor are ids reused.
        self._definitions: OrderedDict[int, StoredSchema] = OrderedDict()
        self._cached_bytes = 0

    async def index(self, schema_id: str, known: SchemaIndex | None = None) -> SchemaIndex | None:
        """The versions that there are now, None if there never was one.

        `known` is what an earlier call returned: it is returned again if it holds still, since to
        parse a locator of 10,000 versions takes some milliseconds.
        """
        found = await self._metadata.get(locator_path(schema_id))
        if found is None:
            return None
        if known is not None and known.value == found.value:
            known.locator_version = found.version
            return known
        return SchemaIndex(found.value, found.version)

    async def ids_of(self, namespace: NamespaceName) -> list[str]:
        """The ids of all schemas of a namespace, whether their topics are there or not."""
        names = await self._metadata.children(f"{SCHEMAS_PATH}/{namespace}")
        return [f"{namespace}/{url_form_decode(name)}" for name in names]

    async def read(self, schema_id: str, index: SchemaIndex, version: int) -> StoredSchema:
        """One of the index's versions."""
        entry = index.entry(version)
        ledger_id = entry.position.ledgerId
        stored = self._definitions.pop(ledger_id, None)
        if stored is None:
            stored = await self._read(schema_id, entry)
            if ledger_id in self._definitions:
                return stored  # another was faster
            self._cached_bytes += _cost(stored)
        self._definitions[ledger_id] = stored
        while len(self._definitions) > CACHED_DEFINITIONS or self._cached_bytes > CACHED_BYTES:
            self._cached_bytes -= _cost(self._definitions.popitem(last=False)[1])
        return stored

    async def read_many(
        self, schema_id: str, index: SchemaIndex, versions: Sequence[int]
    ) -> list[StoredSchema]:
        """Some of the index's versions, in order."""
        return await each_result(
            lambda version: self.read(schema_id, index, version), versions, at_once=NAMES_AT_ONCE
        )

    async def ledgers(self, ledger_ids: Sequence[int]) -> list[LedgerInfo]:
        """What the ledger store knows of these ledgers, in order, without those that are gone."""
        found = await each_result(self._info, ledger_ids, at_once=NAMES_AT_ONCE)
        return [each for each in found if each is not None]

    async def _info(self, ledger_id: int) -> LedgerInfo | None:
        try:
            return await self._ledger_store.info(ledger_id)
        except LedgerNotFoundError:
            return None

    async def _read(self, schema_id: str, index: MarkedIndexEntry) -> StoredSchema:
        reader = await self._ledger_store.open(index.position.ledgerId)
        try:
            entry_id = index.position.entryId
            (data,) = await reader.read(entry_id, entry_id, _MAX_ENTRY_BYTES)
        finally:
            await reader.close()
        entry = SchemaEntry.FromString(bytes(data))
        return decode_stored(entry.schema_data, index.version, schema_id)

    async def append(
        self, schema_id: str, stored: StoredSchema, index: SchemaIndex | None
    ) -> SchemaIndex:
        """Store a version durably as the next of an index, none for the first; returns its index.

        Raises:
            MetadataBadVersionError, MetadataExistsError: Another writer was faster: load again.
            MetadataError, StorageError: It is not stored, or the outcome is unknown.
        """
        path = locator_path(schema_id)
        expected = MUST_NOT_EXIST if index is None else index.locator_version
        entry = SchemaEntry(schema_data=encode_stored(schema_id, stored))
        ledger_id = await self._write_ledger(schema_id, entry.SerializeToString())
        if index is None:
            locator = first_locator(stored, ledger_id)
        else:
            locator = index.with_next(stored, ledger_id)
        value = locator.SerializeToString()
        if self._metadata.limits.writes_only_what_differs:
            value = with_room(value, 0 if index is None else len(index.value))
        try:
            version = await put_settled(self._metadata, path, value, expected_version=expected)
        except (MetadataBadVersionError, MetadataExistsError):
            # The locator was certainly not written, so it can't name this ledger. If the outcome is
            # unknown, the ledger is left to the collector.
            await self._ledger_store.delete(ledger_id)
            raise
        if index is None:
            return SchemaIndex(value, version)
        index.on_written(locator, value, version)
        return index

    async def _write_ledger(self, schema_id: str, data: bytes) -> int:
        confirmed = _Confirmed()
        own = labels.schema(self._cluster, schema_id)
        options = replace(self._ledger_options, custom_metadata=own)
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_SECONDS):
                writer: LedgerWriter = await self._ledger_store.create(confirmed, options)
                writer.append(data)
                await confirmed.future
                await writer.close()
        except TimeoutError as error:
            raise StoreUnavailableError(
                f"{schema_id}: the ledger of the new version was not written within "
                f"{WRITE_TIMEOUT_SECONDS:g} s; try again"
            ) from error
        return writer.ledger_id

    async def named_ledgers(self) -> set[int]:
        """Ids of the ledgers of all versions of all schemas.

        Raises:
            CorruptDataError: A locator can't be read.
        """
        named: set[int] = set()
        paths = [SCHEMAS_PATH]
        for _ in range(_LOCATOR_DEPTH):
            lists = await each_result(self._metadata.children, paths, at_once=NAMES_AT_ONCE)
            paths = [
                f"{path}/{name}" for path, names in zip(paths, lists, strict=True) for name in names
            ]
            named.update(*await each_result(self._named_by, paths, at_once=NAMES_AT_ONCE))
        return named

    async def _named_by(self, path: str) -> list[int]:
        found = await self._metadata.get(path)
        if found is None:
            return []
        try:
            locator = SchemaLocator.FromString(found.value)
        except DecodeError as error:
            raise CorruptDataError(f"{path}: the locator can't be read: {error}") from error
        named = [index.position.ledgerId for index in locator.index]
        if locator.HasField("info"):
            named.append(locator.info.position.ledgerId)
        return named

    async def remove(self, schema_id: str) -> None:
        """Delete the index, then the ledgers."""
        path = locator_path(schema_id)
        found = await self._metadata.get(path)
        if found is None:
            return
        await delete_settled(self._metadata, path, expected_version=found.version)
        for index in SchemaLocator.FromString(found.value).index:
            await self._ledger_store.delete(index.position.ledgerId)


def _cost(stored: StoredSchema) -> int:
    return len(stored.definition.data) + _COST_BYTES


class _Confirmed:
    """Waits until the one entry of a new ledger is durable."""

    def __init__(self) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        """Note that the entry is durable."""
        del ledger_id, last_add_confirmed
        if not self.future.done():
            self.future.set_result(None)

    def on_failed(self, ledger_id: int, error: StorageError) -> None:
        """Note that the entry will never be durable."""
        del ledger_id
        if not self.future.done():
            self.future.set_exception(error)
