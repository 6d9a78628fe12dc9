"""Values of messages as columns: which there are for a topic's schema, and how they are made.

Only raw bytes so far: one column `value`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pulsar_py.client import Client
from pulsar_py.client.message import Message
from pulsar_py.spark.options import ReadOptions
from pulsar_py.spark.rows import BuiltValues, ValueColumns


class RawValues:
    """The payload as it is, in one column `value`."""

    @property
    def fields(self) -> Sequence[pa.Field]:
        """Name and Arrow type of each column."""
        return (pa.field("value", pa.binary()),)

    def build(self, messages: Sequence[Message], wanted: frozenset[str]) -> BuiltValues:
        """The column, if it is wanted; null for a tombstone."""
        # A payload that is there says without its metadata that the value is not null.
        values = [
            data if (data := message.data()) or not message.has_null_value() else None
            for message in messages
        ]
        return BuiltValues({name: pa.array(values, pa.binary()) for name in wanted}, {})


async def value_columns(
    client: Client, options: ReadOptions, topics: Sequence[str]
) -> ValueColumns:
    """Columns for the values of these topics.

    Raises:
        ConfigurationError: Their schemas differ, or can't be columns.
    """
    del client, options, topics
    return RawValues()
