"""Encodes the columns `key` and `value` as KEY_VALUE pairs (pure).

    key, value            each a struct (a record of its fields), or any other single type
    key.<f>, value.<f>    a record of these columns

Pairs are written if the topic has a KEY_VALUE schema, if `keyValueEncoding` asks for it, and into a
topic without a schema if the rows were read from a topic of pairs, which the comment of their
column `key` shows. Keys and values are encoded by the topic's definitions where the columns fit.

    INLINE      key and value are the payload; `__key` is the message's key
    SEPARATED   the value is the payload, the key is the message's key; `__key` is not sent

An inline pair without key and value is a null message. A separate key with a null value is a
tombstone for compaction.

Source: KeyValueSchemaImpl in Pulsar's Java client.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final, TypeAlias

import pyarrow as pa

from pulsar_py.common.errors import ConfigurationError, SchemaSerializationError
from pulsar_py.schema import KeyValueEncodingType, KeyValueSchema, SchemaInfo, SchemaType
from pulsar_py.schema.encoded_schema import EncodedSchema
from pulsar_py.schema.key_value_schema import key_value_encoding_of, split_key_value_info
from pulsar_py.spark.values.pair_columns import KEY, VALUE, comment_encoding
from pulsar_py.spark.values.primitive_encoder import ValueEncoder

_LENGTH: Final = Struct(">i")
_NULL: Final = _LENGTH.pack(-1)

MakePart: TypeAlias = Callable[[Sequence[pa.Field], SchemaInfo | None], ValueEncoder]
"""Makes the encoder of some columns, with the topic's schema for them."""


def pair_encoding(
    fields: Sequence[pa.Field],
    topic_schema: SchemaInfo | None,
    wanted: KeyValueEncodingType | None,
) -> KeyValueEncodingType | None:
    """The encoding of pairs for rows with these value columns; None: they are not pairs.

    Args:
        fields: The value columns.
        topic_schema: The topic's schema; None where it has none, or is not known.
        wanted: The option `keyValueEncoding`.

    Raises:
        ConfigurationError: The topic has another schema, or another encoding.
    """
    if topic_schema is not None and topic_schema.type is SchemaType.KEY_VALUE:
        try:
            found = key_value_encoding_of(topic_schema)
        except SchemaSerializationError as error:
            raise ConfigurationError(f"the topic's schema: {error}") from error
        if wanted is not None and wanted is not found:
            raise ConfigurationError(
                f"keyValueEncoding: {wanted.value.lower()!r}: the topic's schema has"
                f" {found.value.lower()} keys; leave the option out, or give that"
            )
        return found
    has_schema = topic_schema is not None and topic_schema.type not in _NO_SCHEMAS
    if wanted is not None and has_schema:
        assert topic_schema is not None, "asked before"
        raise ConfigurationError(
            f"keyValueEncoding: {wanted.value.lower()!r}: the topic's schema is of type"
            f" {topic_schema.type.name}, not KEY_VALUE"
        )
    if wanted is not None or has_schema:
        return wanted
    keys = [each for each in fields if each.name == KEY or each.name.startswith(f"{KEY}.")]
    return next((told for each in keys if (told := comment_encoding(each)) is not None), None)


_NO_SCHEMAS: Final = (SchemaType.NONE, SchemaType.BYTES)


class KeyValueEncoder:
    """Encodes KEY_VALUE pairs. A `ValueEncoder`."""

    def __init__(
        self,
        fields: Sequence[pa.Field],
        encoding: KeyValueEncodingType,
        topic_schema: SchemaInfo | None,
        make_part: MakePart,
    ) -> None:
        """Assign the columns to keys and values.

        Args:
            fields: All value columns.
            encoding: Whether keys go into the payload.
            topic_schema: The topic's schema, if it has one.
            make_part: Makes the encoders of keys and of values.

        Raises:
            ConfigurationError: The columns are not those of pairs, or don't fit the topic's schema.
        """
        self._is_separated = encoding is KeyValueEncodingType.SEPARATED
        infos: tuple[SchemaInfo | None, SchemaInfo | None] = (None, None)
        if topic_schema is not None and topic_schema.type is SchemaType.KEY_VALUE:
            try:
                infos = split_key_value_info(topic_schema)
            except SchemaSerializationError as error:
                raise ConfigurationError(f"the topic's schema: {error}") from error
        self._key = _Part(KEY, fields, infos[0], make_part)
        self._value = _Part(VALUE, fields, infos[1], make_part)
        taken = {*self._key.columns, *self._value.columns}
        if strange := [each.name for each in fields if each.name not in taken]:
            raise ConfigurationError(
                f"column {strange[0]} is neither of the key nor of the value: KEY_VALUE takes the"
                " columns key and value, or key.<field> and value.<field>"
            )
        made = self._key.schema_info, self._value.schema_info
        schemas = [EncodedSchema(each) for each in made]
        is_topics = topic_schema is not None and made == infos
        self.schema_info = (
            topic_schema
            if is_topics and topic_schema is not None
            else KeyValueSchema(schemas[0], schemas[1], encoding).schema_info()
        )

    def encode(self, batch: pa.RecordBatch) -> Sequence[bytes | None]:
        """See `ValueEncoder`."""
        values = self._value.encode(batch)
        if self._is_separated:
            return values
        keys = self._key.encode(batch)
        return [
            None if key is None and value is None else _with_length(key) + _with_length(value)
            for key, value in zip(keys, values, strict=True)
        ]

    def encode_keys(self, batch: pa.RecordBatch) -> Sequence[bytes | None] | None:
        """See `ValueEncoder`."""
        return self._key.encode(batch) if self._is_separated else None


def _with_length(data: bytes | None) -> bytes:
    return _NULL if data is None else _LENGTH.pack(len(data)) + data


class _Part:
    """Encodes the keys or the values of pairs."""

    def __init__(
        self,
        name: str,
        fields: Sequence[pa.Field],
        topic_schema: SchemaInfo | None,
        make_part: MakePart,
    ) -> None:
        prefix = f"{name}."
        whole = [each for each in fields if each.name == name]
        parts = [each for each in fields if each.name.startswith(prefix)]
        if bool(whole) == bool(parts):
            there = ", ".join(each.name for each in fields)
            what = "both" if whole else "neither"
            raise ConfigurationError(
                f"KEY_VALUE needs the column {name}, or columns {prefix}<field>, and found {what}"
                f" among {there}"
            )
        self.columns = [each.name for each in whole or parts]
        # The fields of the record that columns make; None where one column is the whole part.
        self._fields: list[pa.Field] | None = None
        field = whole[0] if whole else None
        if field is None:
            self._fields = [each.with_name(each.name.removeprefix(prefix)) for each in parts]
            field = pa.field(name, pa.struct(self._fields))
        self._encoder = make_part([field], topic_schema)
        self.schema_info = self._encoder.schema_info
        if topic_schema is None:
            return
        is_record = pa.types.is_struct(field.type)
        if topic_schema.type is not self.schema_info.type:
            kind = "a record" if is_record else str(field.type)
            raise ConfigurationError(
                f"column {name} is {kind}, and the topic has a {name} of schema type"
                f" {topic_schema.type.name}; cast the column, or write into another topic"
            )
        if not is_record:
            self.schema_info = topic_schema

    def encode(self, batch: pa.RecordBatch) -> Sequence[bytes | None]:
        arrays = [batch.column(each) for each in self.columns]
        if self._fields is None:
            (array,) = arrays
        else:
            names = [each.name for each in self._fields]
            array = pa.StructArray.from_arrays(arrays, names=names)
        return self._encoder.encode(pa.RecordBatch.from_arrays([array], names=[VALUE]))
