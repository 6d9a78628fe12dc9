"""`SchemaRegistry`: keeps each topic's schema versions, and checks new ones.

Versions count from 0; a schema equal to one in the history keeps its version. Deleting appends a
tombstone: versions before it don't count any more, the numbering goes on. Histories are cached, and
read again when another broker changed one. Writes to one schema id happen one at a time.

Source: SchemaRegistryServiceImpl in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from weakref import WeakValueDictionary

from msgspec.structs import replace

from pulsar_py.common.errors import (
    IncompatibleSchemaError,
    MetadataBadVersionError,
    MetadataExistsError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.policies import SchemaCompatibilityStrategy
from pulsar_py.ledgers.store import LedgerOptions, LedgerStore
from pulsar_py.metadata.store import (
    MUST_NOT_EXIST,
    MetadataStore,
    Notification,
    NotificationType,
)
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.server.schema_registry.comparers import COMPARERS
from pulsar_py.server.schema_registry.compatibility import (
    Comparers,
    check_consumer_schema,
    check_new_schema,
)
from pulsar_py.server.schema_registry.definition import (
    SchemaDefinition,
    StoredSchema,
    decode_version,
    encode_version,
)
from pulsar_py.server.schema_registry.storage import (
    SCHEMAS_PATH,
    SchemaPlace,
    SchemaStorage,
    locator_path,
)
from pulsar_py.server.schema_registry.validation import check_definition, comparable

CACHED_HISTORIES = 10_000
LONG_HISTORY = 100
"""Versions beyond which a single one is read by itself, unless all are in the cache."""
_TOMBSTONE = SchemaDefinition(type=Schema.Type.Value("None"), data=b"")


class _History:
    """All versions of a schema id, and the version of the locator that names them."""

    def __init__(self, versions: Sequence[StoredSchema], locator_version: int) -> None:
        self.versions: list[StoredSchema] = []
        self.locator_version = locator_version
        self.is_stale = False  # another broker may have changed it
        self._first_live = 0
        self._numbers: dict[tuple[int, bytes], int] = {}  # of live versions, by their definitions
        for stored in versions:
            self._add(stored)

    def update(self, versions: Sequence[StoredSchema], locator_version: int) -> None:
        """Take over versions that begin with those there are."""
        for stored in versions[len(self.versions) :]:
            self._add(stored)
        self.locator_version = locator_version
        self.is_stale = False

    def _add(self, stored: StoredSchema) -> None:
        self.versions.append(stored)
        if stored.is_deleted:
            self._first_live = len(self.versions)
            self._numbers.clear()
        else:
            self._numbers.setdefault(comparable(stored.definition), stored.version)

    @property
    def latest(self) -> StoredSchema | None:
        """The newest version, unless it is a deletion."""
        return self.versions[-1] if len(self.versions) > self._first_live else None

    @property
    def live(self) -> Sequence[StoredSchema]:
        """The versions after the last deletion."""
        return self.versions[self._first_live :]

    def get(self, number: int) -> StoredSchema | None:
        """A version after the last deletion; they are numbered from 0 without gaps."""
        if not self._first_live <= number < len(self.versions):
            return None
        return self.versions[number]

    def find(self, schema: SchemaDefinition) -> bytes | None:
        """The version bytes of an equal schema after the last deletion."""
        number = self._numbers.get(comparable(schema))
        return None if number is None else encode_version(number)


class SchemaRegistry:
    """The versions of all topics' schemas; a broker has one registry.

    A schema id is `tenant/namespace/local-name` of the topic without its partition
    (`TopicName.schema_id`).
    """

    def __init__(
        self,
        metadata: MetadataStore,
        ledger_store: LedgerStore,
        clock: Clock,
        *,
        comparers: Comparers | None = None,
        cluster: str = "",
        ledger_options: LedgerOptions | None = None,
    ) -> None:
        """Take its stores.

        `comparers` has the rules of each schema type; types without rules are compatible. `cluster`
        is the name of the cluster, which becomes a label of each ledger.
        """
        self._storage = SchemaStorage(metadata, ledger_store, cluster, ledger_options)
        self._clock = clock
        self._comparers = COMPARERS if comparers is None else comparers
        self._cache: OrderedDict[str, _History] = OrderedDict()
        self._ids_by_path: dict[str, str] = {}  # of what is cached
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._end_watch = metadata.watch(SCHEMAS_PATH, self._on_changed)

    async def latest(self, schema_id: str) -> StoredSchema | None:
        """The newest version, None if there is none or it was deleted."""
        if await self._is_long(schema_id):
            return await self._storage.read_one(schema_id, None)
        return (await self._history(schema_id)).latest

    async def get(self, schema_id: str, version: bytes) -> StoredSchema | None:
        """The version with these version bytes.

        Raises:
            IncompatibleSchemaError: The version bytes are not eight long.
        """
        number = decode_version(version)
        if await self._is_long(schema_id):
            return await self._storage.read_one(schema_id, number)
        return (await self._history(schema_id)).get(number)

    async def named_ledgers(self) -> set[int]:
        """Ids of all ledgers that hold definitions."""
        return await self._storage.named_ledgers()

    async def history(self, schema_id: str) -> list[StoredSchema]:
        """All versions since the last deletion, oldest first."""
        return list((await self._history(schema_id)).live)

    async def find_version(self, schema_id: str, schema: SchemaDefinition) -> bytes | None:
        """The version bytes of an equal schema in the history, None if there is none."""
        return (await self._history(schema_id)).find(schema)

    async def put_if_absent(
        self,
        schema_id: str,
        schema: SchemaDefinition,
        *,
        strategy: SchemaCompatibilityStrategy,
        is_auto_update_allowed: bool = True,
        user: str = "",
    ) -> bytes:
        """The version bytes of a schema, which is stored as the next version if it is new.

        Raises:
            IncompatibleSchemaError: It is invalid or not compatible, or updates are not allowed.
        """
        check_definition(schema)
        async with self._lock_of(schema_id):
            while True:
                history = await self._history(schema_id)
                known = history.find(schema)
                if known is not None:
                    return known
                if not is_auto_update_allowed:
                    raise IncompatibleSchemaError(
                        "the topic has no such schema, and schemas are not updated automatically: "
                        "an administrator has to upload it"
                    )
                if history.latest is not None:
                    self._check_new(schema, history, strategy)
                version = await self._append(schema_id, history, schema, user)
                if version is not None:
                    return version

    async def check_new(
        self, schema_id: str, schema: SchemaDefinition, *, strategy: SchemaCompatibilityStrategy
    ) -> None:
        """Check that a schema could be the next version; it is not stored.

        Raises:
            IncompatibleSchemaError: It is invalid or not compatible.
        """
        check_definition(schema)
        history = await self._history(schema_id)
        if history.latest is not None and history.find(schema) is None:
            self._check_new(schema, history, strategy)

    def _check_new(
        self, schema: SchemaDefinition, history: _History, strategy: SchemaCompatibilityStrategy
    ) -> None:
        definitions = [each.definition for each in history.live]
        check_new_schema(schema, definitions, strategy, self._comparers)

    async def index(self, schema_id: str) -> list[SchemaPlace]:
        """Where all versions are stored, deletions too, oldest first."""
        return await self._storage.places(schema_id)

    async def check_consumer(
        self,
        schema_id: str,
        schema: SchemaDefinition,
        *,
        strategy: SchemaCompatibilityStrategy,
    ) -> None:
        """Check that a consumer with this schema may read the topic.

        Raises:
            IncompatibleSchemaError: The consumer may not, or the topic has no schema.
        """
        live = (await self._history(schema_id)).live
        if not live:
            raise IncompatibleSchemaError("the topic has no schema to check against")
        definitions = [each.definition for each in live]
        check_consumer_schema(schema, definitions, strategy, self._comparers)

    async def delete(self, schema_id: str, *, user: str = "") -> bytes | None:
        """Append a tombstone; returns its version bytes, None if there never was a schema.

        As in Pulsar, a deleted schema gets another one.
        """
        async with self._lock_of(schema_id):
            while True:
                history = await self._history(schema_id)
                if not history.versions:
                    return None
                version = await self._append(schema_id, history, None, user)
                if version is not None:
                    return version

    async def purge(self, schema_id: str) -> None:
        """Remove all versions and their ledgers, as when the topic is deleted."""
        async with self._lock_of(schema_id):
            self._forget(schema_id)
            await self._storage.remove(schema_id)

    async def close(self) -> None:
        """Stop watching for changes."""
        self._end_watch()

    async def _append(
        self, schema_id: str, history: _History, schema: SchemaDefinition | None, user: str
    ) -> bytes | None:
        """Store the next version, a tombstone for None; returns None if another was faster."""
        stored = StoredSchema(
            definition=schema or _TOMBSTONE,
            version=len(history.versions),
            timestamp_millis=self._clock.wall_time_millis(),
            user=user,
            is_deleted=schema is None,
        )
        try:
            version = await self._storage.append(schema_id, stored, history.locator_version)
        except (MetadataBadVersionError, MetadataExistsError):
            history.is_stale = True
            return None
        if history.versions and len(history.versions) == stored.version:
            named = replace(stored, definition=replace(stored.definition, name=schema_id))
            history.update([*history.versions, named], version)
        return encode_version(stored.version)

    async def _is_long(self, schema_id: str) -> bool:
        """Whether it is better to read one version than all: they are many, and not cached."""
        if schema_id in self._cache:
            return False
        return await self._storage.count(schema_id) > LONG_HISTORY

    async def _history(self, schema_id: str) -> _History:
        history = self._cache.get(schema_id)
        if history is not None and not history.is_stale:
            self._cache.move_to_end(schema_id)
            return history
        if history is None:
            history = _History((), MUST_NOT_EXIST)
        history.is_stale = False  # a change from here on marks it again
        before = history.versions.copy()
        versions, version = await self._storage.load(schema_id, before, history.locator_version)
        if versions[: len(before)] != before or history.versions != before:
            history = _History(versions, version)
        else:
            is_stale = history.is_stale
            history.update(versions, version)
            history.is_stale = is_stale
        if versions:
            self._keep(schema_id, history)
        else:
            self._forget(schema_id)
        return history

    def _keep(self, schema_id: str, history: _History) -> None:
        self._cache[schema_id] = history
        self._cache.move_to_end(schema_id)
        self._ids_by_path[locator_path(schema_id)] = schema_id
        if len(self._cache) > CACHED_HISTORIES:
            self._forget(next(iter(self._cache)))

    def _forget(self, schema_id: str) -> None:
        self._cache.pop(schema_id, None)
        self._ids_by_path.pop(locator_path(schema_id), None)

    def _on_changed(self, notification: Notification) -> None:
        if notification.type is NotificationType.ANYTHING:
            self._cache.clear()
            self._ids_by_path.clear()
            return
        schema_id = self._ids_by_path.get(notification.path)
        if schema_id is not None:
            self._cache[schema_id].is_stale = True

    def _lock_of(self, schema_id: str) -> asyncio.Lock:
        lock = self._locks.get(schema_id)
        if lock is None:
            lock = self._locks[schema_id] = asyncio.Lock()
        return lock
