"""The schema of dead letter topics: the consumer's definition over undecoded payloads (pure).

The dead letter topic gets the schema that the consumer reads with, so that its values can be read.
Payloads are copied as bytes: many messages are dead letters because they can't be decoded.

Source: ConsumerImpl.processPossibleToDLQ in Pulsar's Java client, which uses AUTO_PRODUCE_BYTES.
"""

from __future__ import annotations

from typing import Any

from pulsar_py.schema.encoded_schema import EncodedSchema
from pulsar_py.schema.schema import Schema
from pulsar_py.schema.schema_info import SchemaType

__all__ = ["dead_letter_schema_of"]


def dead_letter_schema_of(
    schema: Schema[Any] | None,
) -> EncodedSchema | None:  # Any: whatever values
    """The dead-letter topic's schema for a consumer with that schema; None: dead letters are bytes.

    That is so where the consumer reads bytes, or reads by the topic's own schema.
    """
    if schema is None or schema.needs_topic_schema:
        return None
    info = schema.schema_info()
    if info.type in (SchemaType.BYTES, SchemaType.NONE, SchemaType.AUTO_CONSUME):
        return None
    return EncodedSchema(info)
