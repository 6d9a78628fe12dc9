"""`SchemaRegistry`: keeps each topic's schema versions, and checks new ones.

Versions count from 0; a schema equal to one in the history keeps its version. Deleting appends a
tombstone: versions before it don't count any more, the numbering goes on. Indexes and definitions
are cached; an index is read again when another broker changed it. Writes to one schema id happen
one at a time.

Of a topic with many versions only those are read that matter: an equal one is found by the index,
and most strategies ask for the newest alone. Transitive ones compare with all, which takes time in
proportion to their number; others have a turn in between.

Source: SchemaRegistryServiceImpl in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from pulsar_py.common.errors import (
    IncompatibleSchemaError,
    MetadataBadVersionError,
    MetadataExistsError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.names import NamespaceName
from pulsar_py.common.policies import SchemaCompatibilityStrategy
from pulsar_py.common.position import Position
from pulsar_py.ledgers.store import LedgerInfo, LedgerOptions, LedgerStore
from pulsar_py.metadata.store import MetadataStore, Notification, NotificationType
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.server.schema_registry.definition import (
    SchemaDefinition,
    StoredSchema,
    decode_version,
)
from pulsar_py.server.schema_registry.schema_index import SchemaIndex
from pulsar_py.server.schema_registry.storage import (
    SCHEMAS_PATH,
    SchemaPlace,
    SchemaStorage,
    locator_path,
)
from pulsar_py.server.schema_registry.validation import (
    AVRO_DEFINED,
    check_definition,
    comparable,
)

if TYPE_CHECKING:
    from pulsar_py.server.schema_registry.compatibility import Comparers


CACHED_INDEXES = 10_000
CACHED_VERSIONS = 200_000
"""Indexes that are kept, and versions in all of them together: one takes about 200 bytes."""
VERSIONS_A_TURN = 64
"""Versions that are read together while many are compared."""
_TOMBSTONE = SchemaDefinition(type=Schema.Type.Value("None"), data=b"")


class _Cached:
    """A schema id's index, and whether another broker may have changed it."""

    __slots__ = ("index", "is_stale")

    def __init__(self, index: SchemaIndex, *, is_stale: bool) -> None:
        self.index = index
        self.is_stale = is_stale


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
        self._comparers = comparers  # None: those of `comparers`, imported at their first use
        self._cache: OrderedDict[str, _Cached] = OrderedDict()
        self._cached_versions = 0
        self._ids_by_path: dict[str, str] = {}  # of what is cached
        self._changes_count = 0  # of any index, that this registry was told of
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._end_watch = metadata.watch(SCHEMAS_PATH, self._on_changed)

    async def latest(self, schema_id: str) -> StoredSchema | None:
        """The newest version, None if there is none or it was deleted."""
        index = await self._index(schema_id)
        if index is None or index.latest is None:
            return None
        return await self._storage.read(schema_id, index, index.latest)

    async def get(self, schema_id: str, version: bytes) -> StoredSchema | None:
        """The version with these version bytes.

        Raises:
            IncompatibleSchemaError: The version bytes are not eight long.
        """
        number = decode_version(version)
        index = await self._index(schema_id)
        if index is None or number not in index.live:
            return None
        return await self._storage.read(schema_id, index, number)

    async def named_ledgers(self) -> set[int]:
        """Ids of all ledgers that hold definitions."""
        return await self._storage.named_ledgers()

    async def history(self, schema_id: str) -> list[StoredSchema]:
        """All versions since the last deletion, oldest first."""
        index = await self._index(schema_id)
        return [] if index is None else await self._storage.read_many(schema_id, index, index.live)

    async def find_version(self, schema_id: str, schema: SchemaDefinition) -> bytes | None:
        """The version bytes of an equal schema in the history, None if there is none."""
        return await self._find(schema_id, await self._index(schema_id), schema)

    async def _find(
        self, schema_id: str, index: SchemaIndex | None, schema: SchemaDefinition
    ) -> bytes | None:
        if index is None:
            return None
        version = await self._first_equal(schema_id, index, schema)
        if version is not None or schema.type not in AVRO_DEFINED:
            return version
        unmarked = index.unmarked()
        if not unmarked:
            return None
        for start in range(0, len(unmarked), VERSIONS_A_TURN):
            versions = unmarked[start : start + VERSIONS_A_TURN]
            index.mark(await self._storage.read_many(schema_id, index, versions))
        return await self._first_equal(schema_id, index, schema)

    async def _first_equal(
        self, schema_id: str, index: SchemaIndex, schema: SchemaDefinition
    ) -> bytes | None:
        form = comparable(schema)
        for number in index.candidates(schema):
            stored = await self._storage.read(schema_id, index, number)
            if comparable(stored.definition) == form:
                return stored.version_bytes
        return None

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
                index = await self._index(schema_id)
                known = await self._find(schema_id, index, schema)
                if known is not None:
                    return known
                if not is_auto_update_allowed:
                    raise IncompatibleSchemaError(
                        "the topic has no such schema, and schemas are not updated automatically: "
                        "an administrator has to upload it"
                    )
                if index is not None and index.latest is not None:
                    await self._check_new(schema_id, schema, index, strategy)
                version = await self._append(schema_id, index, schema, user)
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
        index = await self._index(schema_id)
        if index is None or index.latest is None:
            return
        if await self._find(schema_id, index, schema) is None:
            await self._check_new(schema_id, schema, index, strategy)

    async def _check_new(
        self,
        schema_id: str,
        schema: SchemaDefinition,
        index: SchemaIndex,
        strategy: SchemaCompatibilityStrategy,
    ) -> None:
        from pulsar_py.server.schema_registry.compatibility import (  # noqa: PLC0415 - at first use
            check_new_schema,
            checks_all,
        )

        versions = index.live if checks_all(strategy) else index.live[-1:]
        async for old in self._each(schema_id, index, versions):
            check_new_schema(schema, [old], strategy, self._rules())

    def _rules(self) -> Comparers:
        if self._comparers is None:
            from pulsar_py.server.schema_registry.comparers import (  # noqa: PLC0415 - at first use
                COMPARERS,
            )

            self._comparers = COMPARERS
        return self._comparers

    async def _each(
        self, schema_id: str, index: SchemaIndex, versions: Sequence[int]
    ) -> AsyncIterator[SchemaDefinition]:
        """The definitions of some versions, in order; others have a turn between two."""
        for start in range(0, len(versions), VERSIONS_A_TURN):
            some = versions[start : start + VERSIONS_A_TURN]
            for stored in await self._storage.read_many(schema_id, index, some):
                yield stored.definition
                await asyncio.sleep(0)

    async def index(self, schema_id: str) -> list[SchemaPlace]:
        """Where all versions are stored, deletions too, oldest first."""
        index = await self._index(schema_id)
        return [
            SchemaPlace(each.version, Position(each.position.ledgerId, each.position.entryId))
            for each in (() if index is None else index.entries)
        ]

    async def ledgers(self, schema_id: str) -> list[LedgerInfo]:
        """The ledgers of all versions that are there, oldest first."""
        places = await self.index(schema_id)
        return await self._storage.ledgers([place.position.ledger_id for place in places])

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
        index = await self._index(schema_id)
        if index is None or index.latest is None:
            raise IncompatibleSchemaError("the topic has no schema to check against")
        from pulsar_py.server.schema_registry.compatibility import (  # noqa: PLC0415 - at first use
            check_consumer_schema,
            checks_all,
        )

        versions = index.live if checks_all(strategy, is_consumer=True) else index.live[-1:]
        async for old in self._each(schema_id, index, versions):
            check_consumer_schema(schema, [old], strategy, self._rules())

    async def delete(self, schema_id: str, *, user: str = "") -> bytes | None:
        """Append a tombstone; returns its version bytes, None if there never was a schema.

        As in Pulsar, a deleted schema gets another one.
        """
        async with self._lock_of(schema_id):
            while True:
                index = await self._index(schema_id)
                if index is None:
                    return None
                version = await self._append(schema_id, index, None, user)
                if version is not None:
                    return version

    async def purge(self, schema_id: str) -> None:
        """Remove all versions and their ledgers, as when the topic is deleted."""
        async with self._lock_of(schema_id):
            self._forget(schema_id)
            await self._storage.remove(schema_id)

    async def purge_namespace(self, namespace: NamespaceName) -> None:
        """Do so with all schemas of a namespace that is being deleted, when its topics are gone."""
        for schema_id in await self._storage.ids_of(namespace):
            await self.purge(schema_id)

    async def close(self) -> None:
        """Stop watching for changes."""
        self._end_watch()

    async def _append(
        self, schema_id: str, index: SchemaIndex | None, schema: SchemaDefinition | None, user: str
    ) -> bytes | None:
        """Store the next version, a tombstone for None; returns None if another was faster."""
        stored = StoredSchema(
            definition=schema or _TOMBSTONE,
            version=0 if index is None else len(index),
            timestamp_millis=self._clock.wall_time_millis(),
            user=user,
            is_deleted=schema is None,
        )
        self._forget(schema_id)  # whatever comes of it, and so that nobody sees half of a change
        before = self._changes_count
        try:
            index = await self._storage.append(schema_id, stored, index)
        except (MetadataBadVersionError, MetadataExistsError):
            return None
        self._keep(schema_id, index, is_stale=self._changes_count != before)
        return stored.version_bytes

    async def _index(self, schema_id: str) -> SchemaIndex | None:
        cached = self._cache.get(schema_id)
        if cached is not None and not cached.is_stale:
            self._cache.move_to_end(schema_id)
            return cached.index
        before = self._changes_count
        index = await self._storage.index(schema_id, None if cached is None else cached.index)
        self._forget(schema_id)
        if index is not None:
            self._keep(schema_id, index, is_stale=self._changes_count != before)
        return index

    def _keep(self, schema_id: str, index: SchemaIndex, *, is_stale: bool) -> None:
        self._forget(schema_id)
        self._cache[schema_id] = _Cached(index, is_stale=is_stale)
        self._cached_versions += len(index)
        self._ids_by_path[locator_path(schema_id)] = schema_id
        while len(self._cache) > CACHED_INDEXES or (
            self._cached_versions > CACHED_VERSIONS and len(self._cache) > 1
        ):
            self._forget(next(iter(self._cache)))

    def _forget(self, schema_id: str) -> None:
        cached = self._cache.pop(schema_id, None)
        if cached is not None:
            self._cached_versions -= len(cached.index)
            self._ids_by_path.pop(locator_path(schema_id), None)

    def _on_changed(self, notification: Notification) -> None:
        self._changes_count += 1
        if notification.type is NotificationType.ANYTHING:
            self._cache.clear()
            self._cached_versions = 0
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
