"""The SchemaRegistry: which schema each topic has and had.

Source: SchemaRegistryServiceImpl, BookkeeperSchemaStorage in Pulsar's broker.
"""

from __future__ import annotations

from pulsar_py.common.clock import Clock
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.server.schema_registry.compatibility import CompatibilityStrategy
from pulsar_py.server.schema_registry.definition import SchemaDefinition, StoredSchema
from pulsar_py.storage.ledger_store import LedgerStore


class SchemaRegistry:
    """Versions of the schemas of all topics; one a broker.

    A schema id is `tenant/namespace/local-name` of the topic without its partition.
    """

    def __init__(self, metadata: MetadataStore, ledger_store: LedgerStore, clock: Clock) -> None:
        self._metadata = metadata
        self._ledger_store = ledger_store
        self._clock = clock

    async def latest(self, schema_id: str) -> StoredSchema | None:
        """The newest version, None if there is none or it was deleted."""
        raise NotImplementedError

    async def get(self, schema_id: str, version: bytes) -> StoredSchema | None:
        """The version with these version bytes.

        Raises:
            IncompatibleSchemaError: The version bytes are not eight long.
        """
        raise NotImplementedError

    async def history(self, schema_id: str) -> list[StoredSchema]:
        """All versions since the last deletion, oldest first."""
        raise NotImplementedError

    async def find_version(self, schema_id: str, schema: SchemaDefinition) -> bytes | None:
        """The version bytes of an equal schema in the history, None if there is none."""
        raise NotImplementedError

    async def put_if_absent(
        self,
        schema_id: str,
        schema: SchemaDefinition,
        *,
        strategy: CompatibilityStrategy,
        is_auto_update_allowed: bool = True,
        user: str = "",
    ) -> bytes:
        """Version bytes of the schema; stored as the next version if it is not there yet.

        Raises:
            IncompatibleSchemaError: It is invalid, may not follow the latest, or may not be added.
        """
        raise NotImplementedError

    async def check_consumer(
        self, schema_id: str, schema: SchemaDefinition, *, strategy: CompatibilityStrategy
    ) -> None:
        """Return if a consumer with this schema may read the topic.

        Raises:
            IncompatibleSchemaError: It may not, or the topic has no schema.
        """
        raise NotImplementedError

    async def delete(self, schema_id: str, *, user: str = "") -> bytes | None:
        """Append a deletion; returns its version bytes, None if there was no schema."""
        raise NotImplementedError

    async def purge(self, schema_id: str) -> None:
        """Remove all versions and their ledgers, as when the topic is deleted."""
        raise NotImplementedError

    async def close(self) -> None:
        """End what is under way."""
        raise NotImplementedError
