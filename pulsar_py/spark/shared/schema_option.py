"""Writes a schema as the text of an option, and reads it (pure).

    {"type": "AVRO", "schema": "{...}", "name": "Order", "properties": {...}}

`pulsar-admin schemas upload` takes the same form. `schema` is the definition; where the definition
is not text, as that of KEY_VALUE, `data` has it in Base64.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.schema import KeyValueEncodingType, SchemaInfo, SchemaType
from pulsar_py.schema.key_value_schema import key_value_encoding_of


def schema_option(info: SchemaInfo) -> str:
    """The text for a schema."""
    fields: dict[str, Any] = {"type": info.type.name}  # Any: JSON
    try:
        fields["schema"] = info.data.decode()
    except UnicodeDecodeError:
        fields["data"] = b64encode(info.data).decode()
    return json.dumps(fields | {"name": info.name, "properties": dict(info.properties)})


def parse_schema_option(name: str, text: str) -> SchemaInfo:
    """The schema of a text.

    Args:
        name: The name of the option, for errors.
        text: Its value.

    Raises:
        ConfigurationError: The text is not a schema.
    """
    try:
        given = parse_json(text)
        kind = SchemaType[str(given["type"]).upper()]
        data = (
            b64decode(given["data"], validate=True)
            if "data" in given
            else str(given.get("schema", "")).encode()
        )
        properties = dict(given.get("properties") or {})
        texts = {str(key): str(value) for key, value in properties.items()}
        return SchemaInfo(kind, str(given.get("name", "")), data, texts)
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f'{name}: {text!r:.200}: {error}; expected {{"type": "AVRO", "schema": "...",'
            ' "properties": {}}'
        ) from None


def option_has_separate_keys(text: str | None) -> bool:
    """Whether a text has a KEY_VALUE schema with separate keys; no text stands for no schema."""
    if text is None:
        return False
    info = parse_schema_option("valueSchema", text)
    if info.type is not SchemaType.KEY_VALUE:
        return False
    return key_value_encoding_of(info) is KeyValueEncodingType.SEPARATED
