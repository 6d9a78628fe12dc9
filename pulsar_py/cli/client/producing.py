"""`pulsar-py client produce`: publishes contents of the command line or of files (edge).

Source: CmdProduce in Pulsar's client tools.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pulsar_py.client.security.crypto_keys import CryptoKeyReader
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.schema import (
    BytesSchema,
    KeyValue,
    KeyValueEncodingType,
    KeyValueSchema,
    Schema,
    SchemaInfo,
    SchemaType,
    StringSchema,
    schema_of,
)

if TYPE_CHECKING:
    from pulsar_py.cli.connecting.connection import Connection

_STRUCTURES: Final = {"avro": SchemaType.AVRO, "json": SchemaType.JSON}


def schema_named(text: str) -> tuple[Schema[Any], bool]:
    """The schema of `bytes`, `string`, `avro:DEFINITION` or `json:DEFINITION`.

    Returns:
        It, and whether contents are JSON.

    Raises:
        ValueError: It is none of them.
    """
    kind, _, definition = text.partition(":")
    if text == "bytes":
        return BytesSchema(), False
    if text == "string":
        return StringSchema(), False
    if kind in _STRUCTURES and definition:
        return schema_of(SchemaInfo(_STRUCTURES[kind], "", definition.encode())), True
    raise ValueError(f"schema {text!r}: expected bytes, string, avro:DEFINITION or json:DEFINITION")


def contents(messages: Sequence[str], files: Sequence[str], separator: str) -> list[bytes]:
    """The contents, those of `messages` first.

    Raises:
        OSError: A file can't be read.
    """
    found = [
        part.encode()
        for text in messages
        for part in (text.split(separator) if separator else [text])
    ]
    names = [name for text in files for name in text.split(",") if name]
    return found + [Path(name).read_bytes() for name in names]


def value_of(content: bytes, schema: Schema[Any], *, is_json: bool) -> Any:  # Any: as schemas take
    """What is published of a content."""
    if is_json:
        return parse_json(content)
    return content.decode() if isinstance(schema, StringSchema) else content


async def produce(
    where: Connection,
    options: Mapping[str, Any],
    given: Mapping[str, Any],
    clock: Clock | None = None,
) -> None:
    """Publish, and print how many messages the broker has.

    Raises:
        PulsarError, OSError, ValueError: It could not be done; what went before is published.
    """
    clock = clock or SystemClock()
    schema, is_json = schema_named(given["value_schema"])
    values = [
        value_of(each, schema, is_json=is_json)
        for each in contents(given["messages"], given["files"], given["separator"])
    ]
    encoding = given["key_value_encoding_type"]
    if encoding:
        schema, values = _pairs(given, schema, values, encoding)
    more: dict[str, Any] = {}  # Any: each option has its own type
    if given["encryption_key_name"]:
        path = (given["encryption_key_value"] or "").removeprefix("file://")
        more = {
            "encryption_key": given["encryption_key_name"],
            "crypto_key_reader": CryptoKeyReader(path),
        }
    count = 0
    is_told = given["output"] == "json"
    try:
        async with where.client(**options) as client:
            producer = await client.create_producer(
                given["topic"],
                schema=schema,
                batching_enabled=not (given["disable_batching"] or given["chunking"]),
                chunking_enabled=given["chunking"],
                block_if_queue_full=True,
                **more,
            )
            start = clock.monotonic_seconds()
            for _ in range(given["num_produce"]):
                for value in values:
                    await wait_for_turn(clock, start, count, given["rate"])
                    message_id = await producer.send(
                        value,
                        properties=given["properties"] or None,
                        key=given["key"],
                        disable_replication=given["disable_replication"],
                    )
                    count += 1
                    if is_told:
                        told = {"messageId": str(message_id), "key": given["key"]}
                        sys.stdout.write(f"{json.dumps(told)}\n")
    finally:
        if not is_told:
            sys.stdout.write(f"{count} messages successfully produced\n")


async def wait_for_turn(clock: Clock, start: float, count: int, rate: float) -> None:
    """Wait until message number `count`, from 0, is due at a rate a second; 0 is no bound."""
    if rate > 0 and (delay := start + count / rate - clock.monotonic_seconds()) > 0:
        await clock.sleep(delay)


def _pairs(
    given: Mapping[str, Any], schema: Schema[Any], values: list[Any], encoding: str
) -> tuple[Schema[Any], list[Any]]:
    """Each value with the key of a pair."""
    keys, is_json = schema_named(given["key_schema"])
    path = given["key_value_key_file"]
    content = Path(path).read_bytes() if path else (given["key_value_key"] or "").encode()
    key = value_of(content, keys, is_json=is_json)
    kind = KeyValueEncodingType[encoding.upper()]
    return KeyValueSchema(keys, schema, kind), [KeyValue(key, value) for value in values]
