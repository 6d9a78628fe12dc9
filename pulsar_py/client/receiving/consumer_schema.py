"""Applies a consumer's schema: to SUBSCRIBE, to values, and to versions that have to be fetched.

Without a schema, or with one of bytes, there is nothing to do, and values are bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pulsar_py.client.messages.message import ValueDecoder
from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.proto.PulsarApi_pb2 import Schema as WireSchema

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_context import ClientContext
    from pulsar_py.client.receiving.schema_reader import SchemaReader

__all__ = ["ConsumerSchema"]


class ConsumerSchema:
    """The schema of one consumer; owned by it."""

    def __init__(self, context: ClientContext, topic: str, schema: Any) -> None:
        """`schema` None: values are bytes. Any: a Schema of any value type.

        Raises:
            InvalidConfigurationError: It is neither None nor a Schema.
        """
        self._wire: WireSchema | None = None
        self._reader: SchemaReader | None = None
        # Decodes values; None: values are the payloads.
        self.decoder: ValueDecoder | None = None
        # Returns whether a version has to be fetched first; None: none ever has.
        self.is_version_missing: Callable[[bytes], bool] | None = None
        if schema is not None:
            self._use(context, topic, schema)

    def _use(self, context: ClientContext, topic: str, schema: Any) -> None:
        from pulsar_py.client.receiving.schema_reader import SchemaReader  # noqa: PLC0415 - at first use
        from pulsar_py.schema.primitive_schemas import BytesSchema  # noqa: PLC0415 - as above
        from pulsar_py.schema.schema import Schema  # noqa: PLC0415 - as above

        if not isinstance(schema, Schema):
            raise InvalidConfigurationError(
                f"schema={schema!r:.100}: expected a Schema, got {type(schema).__name__}"
            )
        if isinstance(schema, BytesSchema):
            return
        self._wire = schema.schema_info().to_wire()
        self._reader = SchemaReader(context.lookup, topic, schema)
        self.decoder = self._reader
        if schema.reads_versions:
            self.is_version_missing = self._reader.is_missing

    def to_wire(self) -> WireSchema | None:
        """The schema for SUBSCRIBE; None for bytes, and for schemas that brokers do not check."""
        return self._wire

    async def load(self, version: bytes) -> None:
        """Fetch that version of the topic's schema.

        Raises:
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """
        if self._reader is not None:
            await self._reader.load(version)
