"""Finds the schemas of topics: the columns of their values, and each version's definition (edge).

All topics of a read must have one schema, that of the newest version when the query is planned;
messages of other versions are read as that one. A task asks for the definition of a version when
the first message comes that names it, once for each version. Messages whose version was deleted are
read as if they had the newest one, with a warning.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from pulsar_py.client import Client
from pulsar_py.common.errors import ConfigurationError, TopicNotFoundError
from pulsar_py.common.foreign_json import MAX_DEFINITION_DEPTH, parse_json
from pulsar_py.common.names import TopicName
from pulsar_py.schema import SchemaInfo, SchemaType
from pulsar_py.spark.shared.options import WAITING, ClientOptions, ReadOptions, ValueMode
from pulsar_py.spark.shared.runtime import runtime
from pulsar_py.spark.values.metadata_columns import COLUMNS, UNDECODABLE_COLUMN
from pulsar_py.spark.values.value_columns import RawValues, ValueColumns, columns_of_schema

__all__ = ["RawValues", "TopicVersions", "check_projection", "newest_schema", "value_columns"]

logger = logging.getLogger(__name__)

MAX_VERSIONS = 1000
"""Definitions kept by one task; the oldest goes first."""

NO_SCHEMA = SchemaInfo(SchemaType.BYTES, properties={})

VersionKey = tuple[str, bytes]
"""A topic without its partition, and the version as messages name it."""


class TopicVersions:
    """Knows the versions of topics' schemas; asks for those it does not know. A `Writers`."""

    def __init__(self, options: ClientOptions, known: dict[VersionKey, SchemaInfo | None]) -> None:
        """`known` spares questions; it is sent to workers with this."""
        self._options = options
        self._known = known
        # Topics without their partitions, by their names.
        self._bases: dict[str, str] = {}

    def __reduce__(self) -> tuple[type[TopicVersions], tuple[object, ...]]:
        return type(self), (self._options, self._known)

    def writer(self, topic: str, version: bytes) -> SchemaInfo | None:
        """See `Writers`. Not to be called on the process's loop, which it waits for."""
        base = self._bases.get(topic)
        if base is None:
            base = self._bases[topic] = base_of(topic)
        key = (base, version)
        if key not in self._known:
            if len(self._known) >= MAX_VERSIONS:
                del self._known[next(iter(self._known))]
            self._known[key] = runtime().loop.call(self._ask(base, version))
        return self._known[key]

    async def _ask(self, topic: str, version: bytes) -> SchemaInfo | None:
        async with runtime().clients.client(self._options) as client:
            found = await _schema(client, topic, version)
        if found is not None:
            return found[0]
        # It was deleted; Java reads such values by the newest one, too.
        detail = f"{topic}: version {version.hex()} is read as the newest, which it may not be"
        logger.warning("a version of a schema is gone", extra={"detail": detail})
        return None


def base_of(topic: str) -> str:
    """The topic that a partition is of."""
    return str(TopicName.parse(topic).base)


async def _schema(
    client: Client, topic: str, version: bytes | None = None
) -> tuple[SchemaInfo, bytes] | None:
    """A topic's schema and its version; None where there is none."""
    answer = await client.context.lookup.schema(topic, version)
    return None if answer is None else (SchemaInfo.from_wire(answer.schema), answer.version)


async def newest_schema(client: Client, topic: str) -> SchemaInfo | None:
    """The schema that a topic has now; None where it has none, or does not exist yet."""
    found = await _schema(client, base_of(topic))
    return None if found is None else found[0]


async def value_columns(
    client: Client,
    options: ReadOptions,
    topics: Sequence[str],
    exists: Callable[[str], Awaitable[bool]],
) -> ValueColumns:
    """Columns for the values of these topics.

    A topic that does not exist has no say; where none does, values are bytes, and plans report it,
    unless that is no error: then topics that come later would be read as what they are not.

    Raises:
        ConfigurationError: Their schemas differ, or can't be columns.
        TopicNotFoundError: None exists, and plans would go on without.
    """
    if options.value_mode is ValueMode.RAW:
        return RawValues()
    known: dict[VersionKey, SchemaInfo | None] = {}
    infos: dict[str, SchemaInfo] = {}
    for topic in dict.fromkeys(map(base_of, topics)):
        found = await _schema(client, topic)
        infos[topic] = NO_SCHEMA if found is None else found[0]
        if found is not None:
            known[topic, found[1]] = found[0]
    if known:
        absent = [each for each in infos if infos[each] is NO_SCHEMA and not await exists(each)]
        infos = {topic: info for topic, info in infos.items() if topic not in absent}
    elif not options.fail_on_data_loss and not await _any_exists(infos, exists):
        raise TopicNotFoundError(
            f"{', '.join(infos)}: there is no such topic, so columns can't be told; {WAITING},"
            " valueMode=raw gives the payloads of topics that come"
        )
    first: tuple[str, SchemaInfo] | None = None
    for topic, info in infos.items():
        first = first or (topic, info)
        if not is_same(first[1], info):
            raise ConfigurationError(
                f"{first[0]} has a schema of type {first[1].type.name}, {topic} another one of"
                f" type {info.type.name}: one read has one schema; valueMode=raw gives the payloads"
            )
    assert first is not None, "a read without topics was refused before"
    topic, info = first
    try:
        columns = columns_of_schema(info, TopicVersions(options.client, known))
        _check_names(columns)
    except ConfigurationError as error:
        raise ConfigurationError(f"{topic}: {error}") from error
    return columns


async def _any_exists(topics: Iterable[str], exists: Callable[[str], Awaitable[bool]]) -> bool:
    for each in topics:
        if await exists(each):
            return True
    return False


def is_same(one: SchemaInfo, other: SchemaInfo) -> bool:
    """Whether values of both have the same columns for the same reasons."""
    if one.type is not other.type:
        return False
    if one.type is SchemaType.KEY_VALUE and dict(one.properties) != dict(other.properties):
        return False
    if one.data == other.data or not one.type.has_definition_in_avro:
        return one.data == other.data
    try:
        return bool(_parsed(one) == _parsed(other))
    except ValueError:
        return False


def _parsed(info: SchemaInfo) -> Any:  # Any: JSON
    return parse_json(info.data, max_depth=MAX_DEFINITION_DEPTH)


def _check_names(columns: ValueColumns) -> None:
    """A field that is called as a metadata column could not be told from it."""
    taken = {name.lower() for name in (*COLUMNS, UNDECODABLE_COLUMN)}
    for field in columns.fields:
        if field.name.lower() in taken:
            raise ConfigurationError(
                f"the topic's schema has a field {field.name!r}, which is a metadata column here;"
                " valueMode=raw gives the payloads"
            )


def check_projection(columns: ValueColumns, schema: pa.Schema) -> tuple[str, ...]:
    """The names of a schema's columns, which may be a user's: all, or some, in any order.

    Raises:
        ConfigurationError: There is no such column, or it has another type.
    """
    types = {field.name: field.type for field in columns.fields}
    types |= {name: column.arrow_type for name, column in COLUMNS.items()}
    types[UNDECODABLE_COLUMN] = pa.binary()
    for field in schema:
        found = types.get(field.name)
        if found is None:
            close = difflib.get_close_matches(field.name, list(types), n=1)
            hint = f", did you mean {close[0]!r}?" if close else ""
            raise ConfigurationError(f"schema: there is no column {field.name!r}{hint}")
        if found != field.type:
            raise ConfigurationError(
                f"schema: column {field.name!r} is {found} in the topic, not {field.type}"
            )
    return tuple(schema.names)
