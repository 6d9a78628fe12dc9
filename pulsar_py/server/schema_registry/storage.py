"""Stores schemas: an index in the metadata store, each definition in a ledger of its own.

    /schemas/<tenant>/<namespace>/<encoded local name>   SchemaLocator
        info   the newest IndexEntry: version, position (ledger, entry 0), SHA-256 of the definition
        index  the IndexEntries of all versions, oldest first
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
    MetadataBadVersionError,
    MetadataExistsError,
    StorageError,
    StoreUnavailableError,
)
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.names import url_form_encode
from pulsar_py.common.position import Position
from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import LedgerOptions, LedgerStore, LedgerWriter
from pulsar_py.metadata.settling import delete_settled, put_settled
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore
from pulsar_py.proto.SchemaStorageFormat_pb2 import IndexEntry, SchemaEntry, SchemaLocator
from pulsar_py.server.schema_registry.definition import (
    StoredSchema,
    decode_stored,
    encode_stored,
)

SCHEMAS_PATH = "/schemas"
_MAX_ENTRY_BYTES = 16 * 1024 * 1024

_LOCATOR_DEPTH = 3  # tenants, namespaces, topics

NAMES_AT_ONCE = 64
"""Requests to the metadata store that are under way at the same time."""

PARSED_INDEXES = 8
"""Parsed locators of many versions that are kept; one of 10,000 versions takes some MB."""
FEW_VERSIONS = 50
"""A locator of at most so many versions is parsed each time."""

WRITE_TIMEOUT_SECONDS = 60.0
"""Seconds within which a version's ledger has to be created, written and closed."""


def locator_path(schema_id: str) -> str:
    """The path of a schema id's index."""
    namespace, _, local_name = schema_id.rpartition("/")
    return f"{SCHEMAS_PATH}/{namespace}/{url_form_encode(local_name)}"


def hash_of(stored: StoredSchema) -> bytes:
    """What the index has for a version: the SHA-256 of its definition, nothing of a deletion."""
    return b"" if stored.is_deleted else stored.definition.sha256


class SchemaPlace(NamedTuple):
    """Where one version is stored."""

    version: int
    position: Position


class _Index:
    """A schema id's locator as it was read last."""

    __slots__ = ("entries", "first_live", "value")

    def __init__(self, value: bytes) -> None:
        # Compared as it is: a locator that was removed and made anew may have the same version.
        self.value = value
        self.entries = SchemaLocator.FromString(value).index
        self.first_live = 0
        """The first version after the last deletion, which has no hash."""
        for number in range(len(self.entries) - 1, -1, -1):
            if not self.entries[number].hash:
                self.first_live = number + 1
                break


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
        self._indexes: OrderedDict[str, _Index] = OrderedDict()

    async def load(
        self,
        schema_id: str,
        known: Sequence[StoredSchema] = (),
        known_version: int = MUST_NOT_EXIST,
    ) -> tuple[Sequence[StoredSchema], int]:
        """All versions, deletions too, oldest first; and the locator's version for `append`.

        Only those are read that are not `known` from an earlier call, when the locator had
        `known_version`; if it has it still, `known` itself is returned.
        """
        found = await self._metadata.get(locator_path(schema_id))
        if found is None:
            return [], MUST_NOT_EXIST
        if found.version == known_version:
            return known, known_version
        index = SchemaLocator.FromString(found.value).index
        same = 0
        for each, stored in zip(index, known, strict=False):
            if (each.version, each.hash) != (stored.version, hash_of(stored)):
                break
            same += 1
        read = await each_result(
            lambda each: self._read(schema_id, each), index[same:], at_once=NAMES_AT_ONCE
        )
        return [*known[:same], *read], found.version

    async def read_one(self, schema_id: str, version: int | None) -> StoredSchema | None:
        """One version since the last deletion, or the newest, without reading the others.

        Its locator is parsed only if it has changed: of 10,000 versions that takes some
        milliseconds.
        """
        index = await self._index(schema_id)
        if index is None:
            return None
        number = len(index.entries) - 1 if version is None else version
        if not index.first_live <= number < len(index.entries):
            return None
        return await self._read(schema_id, index.entries[number])

    async def count(self, schema_id: str) -> int:
        """How many versions there are, deletions too."""
        index = await self._index(schema_id)
        return 0 if index is None else len(index.entries)

    async def _index(self, schema_id: str) -> _Index | None:
        path = locator_path(schema_id)
        found = await self._metadata.get(path)
        index = self._indexes.pop(path, None)
        if found is None:
            return None
        if index is None or index.value != found.value:
            index = _Index(found.value)
        if len(index.entries) > FEW_VERSIONS:
            self._indexes[path] = index
            if len(self._indexes) > PARSED_INDEXES:
                self._indexes.popitem(last=False)
        return index

    async def places(self, schema_id: str) -> list[SchemaPlace]:
        """Where all versions are stored, oldest first."""
        index = await self._index(schema_id)
        return [
            SchemaPlace(each.version, Position(each.position.ledgerId, each.position.entryId))
            for each in (() if index is None else index.entries)
        ]

    async def _read(self, schema_id: str, index: IndexEntry) -> StoredSchema:
        reader = await self._ledger_store.open(index.position.ledgerId)
        try:
            entry_id = index.position.entryId
            (data,) = await reader.read(entry_id, entry_id, _MAX_ENTRY_BYTES)
        finally:
            await reader.close()
        entry = SchemaEntry.FromString(bytes(data))
        return decode_stored(entry.schema_data, index.version, schema_id)

    async def append(self, schema_id: str, stored: StoredSchema, locator_version: int) -> int:
        """Store a version durably; returns the locator's new version.

        Raises:
            MetadataBadVersionError, MetadataExistsError: Another writer was faster: load again.
            MetadataError, StorageError: It is not stored, or the outcome is unknown.
        """
        path = locator_path(schema_id)
        locator = SchemaLocator()
        if locator_version != MUST_NOT_EXIST:
            found = await self._metadata.get(path)
            if found is not None:
                locator.MergeFromString(found.value)
        entry = SchemaEntry(schema_data=encode_stored(schema_id, stored))
        ledger_id = await self._write_ledger(schema_id, entry.SerializeToString())
        new = locator.index.add(version=stored.version, hash=hash_of(stored))
        new.position.ledgerId, new.position.entryId = ledger_id, 0
        locator.info.CopyFrom(new)
        try:
            return await put_settled(
                self._metadata, path, locator.SerializeToString(), expected_version=locator_version
            )
        except (MetadataBadVersionError, MetadataExistsError):
            # The locator was certainly not written, so it can't name this ledger. If the outcome is
            # unknown, the ledger is left to the collector.
            await self._ledger_store.delete(ledger_id)
            raise

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
