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
"""How many definitions a task keeps; the oldest is dropped first."""

NO_SCHEMA = SchemaInfo(SchemaType.BYTES, properties={})

VersionKey = tuple[str, bytes]
"""A topic's name without the partition, and the version as messages name it."""


class TopicVersions:
    """The versions of topics' schemas, asked for when they are needed. A `Writers`."""

    def __init__(self, options: ClientOptions, known: dict[VersionKey, SchemaInfo | None]) -> None:
        """`known` has the versions that are known already; workers get them with this object."""
        self._options = options
        self._known = known
        # Topics without partition by topic: parsing a name for each message would cost.
        self._bases: dict[str, str] = {}

    def __reduce__(self) -> tuple[type[TopicVersions], tuple[object, ...]]:
        return type(self), (self._options, self._known)

    def writer(self, topic: str, version: bytes) -> SchemaInfo | None:
        """See `Writers`. Never call it on the process's loop: it blocks until the loop answers."""
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
        # The version was deleted. Java's client reads such values by the newest version, too.
        detail = f"{topic}: messages of version {version.hex()} are read with the newest version"
        logger.warning("a version of a schema was deleted", extra={"detail": detail})
        return None


def base_of(topic: str) -> str:
    """The topic of a partition."""
    return str(TopicName.parse(topic).base)


async def _schema(
    client: Client, topic: str, version: bytes | None = None
) -> tuple[SchemaInfo, bytes] | None:
    """A schema of a topic, and its version; None where it does not exist."""
    answer = await client.context.lookup.schema(topic, version)
    return None if answer is None else (SchemaInfo.from_wire(answer.schema), answer.version)


async def newest_schema(client: Client, topic: str) -> SchemaInfo | None:
    """The newest schema of a topic; None where it has none, or does not exist yet."""
    found = await _schema(client, base_of(topic))
    return None if found is None else found[0]


async def value_columns(
    client: Client,
    options: ReadOptions,
    topics: Sequence[str],
    exists: Callable[[str], Awaitable[bool]],
) -> ValueColumns:
    """The columns for the values of these topics.

    Topics that do not exist are left out. If none exists, values are bytes and the plan reports the
    missing topics as an error. With `failOnDataLoss=false` it would not, and topics that are
    created later would be read as bytes, so that is an error here.

    Raises:
        ConfigurationError: The schemas differ, or their values can't be columns.
        TopicNotFoundError: No topic exists, and `failOnDataLoss` is false.
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
            f"{', '.join(infos)}: there is no such topic, so its columns are unknown; {WAITING},"
            " valueMode=raw reads topics that are created later as bytes"
        )
    first: tuple[str, SchemaInfo] | None = None
    for topic, info in infos.items():
        first = first or (topic, info)
        if not is_same(first[1], info):
            raise ConfigurationError(
                f"{first[0]} has a schema of type {first[1].type.name}, {topic} another one of"
                f" type {info.type.name}, and a read takes one schema; read them apart, or the"
                " payloads with valueMode=raw"
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
    """Whether two schemas are the same, layout of their JSON apart."""
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
    """Refuse a field with the name of a metadata column, since Spark ignores case."""
    taken = {name.lower() for name in (*COLUMNS, UNDECODABLE_COLUMN)}
    for field in columns.fields:
        if field.name.lower() in taken:
            raise ConfigurationError(
                f"the topic's schema has a field {field.name!r}, which is the name of a metadata"
                " column; valueMode=raw gives the payloads"
            )


def check_projection(columns: ValueColumns, schema: pa.Schema) -> tuple[str, ...]:
    """The names of a schema's columns; a user's schema may have some of them, in any order.

    Raises:
        ConfigurationError: A column does not exist, or has another type.
    """
    types = {field.name: field.type for field in columns.fields}
    types |= {name: column.arrow_type for name, column in COLUMNS.items()}
    types[UNDECODABLE_COLUMN] = pa.binary()
    for field in schema:
        found = types.get(field.name)
        if found is None:
            close = difflib.get_close_matches(field.name, list(types), n=1)
            there = ", ".join(each.name for each in columns.fields)
            hint = f", did you mean {close[0]!r}?" if close else f"; the topic's value has {there}"
            raise ConfigurationError(f"schema: there is no column {field.name!r}{hint}")
        if found != field.type:
            raise ConfigurationError(
                f"schema: column {field.name!r} is {found} in the topic, not {field.type}; give"
                " that type, and cast the column after the read"
            )
    return tuple(schema.names)
