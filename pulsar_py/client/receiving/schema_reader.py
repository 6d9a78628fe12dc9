"""Fetches the schema versions that received messages were written with (edge).

`Message.value` is a plain function, so the definition of a version has to be here before a message
that names it is handed out: the receiver asks `is_missing` for each entry and awaits `load`. A
decoder is kept for each version, at most `MAX_VERSIONS` of them; the lookup shares one request
among all that ask for the same version.

A version that the broker doesn't know (the schema was deleted) is decoded by the consumer's own
schema, as in Java; if that is auto-consume, such a message has no value, but still its bytes. A
version that could not be fetched is asked for again with the next message.

Source: MultiVersionSchemaInfoProvider and AbstractMultiVersionReader in Pulsar's Java client.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.common.names import TopicName
from pulsar_py.schema.schema import Decoder, Schema
from pulsar_py.schema.schema_info import SchemaInfo, SchemaType

if TYPE_CHECKING:
    from pulsar_py.client.brokers.lookup import LookupService

__all__ = ["MAX_VERSIONS", "SchemaReader"]

logger = logging.getLogger(__name__)

MAX_VERSIONS: Final = 1000
"""Decoders kept for one consumer; the oldest goes first."""

AnyDecoder = Decoder[Any]  # Any: the application's values


class SchemaReader:
    """Decodes the messages of one topic; owned by its consumer. A `ValueDecoder`."""

    def __init__(self, lookup: LookupService, topic: str, schema: Schema[Any]) -> None:
        """`topic` may be a partition's: all of them have one schema."""
        self._lookup = lookup
        self._topic = str(TopicName.parse(topic).base)
        self._schema = schema
        # Version -> decoder; None: that of messages that name no version.
        self._decoders: dict[bytes | None, AnyDecoder] = {None: schema.decoder_for(None)}
        # Whether the schema decodes all versions alike, so that none has to be fetched.
        self._reads_versions = schema.reads_versions

    def is_missing(self, version: bytes) -> bool:
        """Whether `load` has to be awaited before a message of that version is handed out."""
        return bool(version) and version not in self._decoders and self._reads_versions

    async def load(self, version: bytes) -> None:
        """Fetch a version's definition, and make its decoder.

        Raises:
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """
        if not self.is_missing(version):
            return
        answer = await self._lookup.schema(self._topic, version)
        writer = None if answer is None else SchemaInfo.from_wire(answer.schema)
        if len(self._decoders) > MAX_VERSIONS:
            oldest = next(each for each in self._decoders if each is not None)
            del self._decoders[oldest]
        self._decoders[version] = self._decoder(version, writer)

    def _decoder(self, version: bytes, writer: SchemaInfo | None) -> AnyDecoder:
        number = int.from_bytes(version, "big")
        if writer is None:
            if self._schema.schema_info().type is SchemaType.AUTO_CONSUME:
                return _failing("the topic has no schema of that version")
            logger.warning(
                "%s: schema version %s unknown",
                self._topic,
                number,
                extra={"topic": self._topic, "version": number},
            )
        try:
            return self._schema.decoder_for(writer)
        except SchemaSerializationError as error:
            return _failing(str(error))

    def decode(self, data: bytes | None, schema_version: bytes | None, key: bytes | None) -> Any:
        """See `ValueDecoder`."""
        # Hot path: consume in `make bench-client`, with a schema.
        if not schema_version or not self._reads_versions:
            schema_version = None
        decoder = self._decoders.get(schema_version)
        if decoder is None:
            assert schema_version is not None  # the decoder for None always exists
            raise SchemaSerializationError(
                f"{self._topic}: schema version {int.from_bytes(schema_version, 'big')} was not "
                "loaded: the broker was asked and did not answer"
            )
        try:
            return decoder(data, key)
        except SchemaSerializationError as error:
            written = ""
            if schema_version is not None:
                written = f"written with schema version {int.from_bytes(schema_version, 'big')}: "
            raise SchemaSerializationError(f"{self._topic}: {written}{error}") from error


def _failing(text: str) -> AnyDecoder:
    def decoder(_data: bytes | None, _key: bytes | None) -> Any:
        raise SchemaSerializationError(text)

    return decoder
