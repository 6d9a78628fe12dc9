"""Options of the connector, checked and parsed from the texts that Spark hands over (pure).

Spark passes options as a case-insensitive mapping with lower-cased keys. Names and defaults are
those of the JVM connector, except that `failOnDataLoss` is true, as that connector's documentation
says; Kafka's names are taken as aliases. `ReadOptions.parse` and `WriteOptions.parse` check
everything before any broker is asked; an unknown option is an error that proposes the nearest.

Settings of clients travel as `pulsar.client.*`, `pulsar.reader.*`, `pulsar.producer.*` and
`pulsar.admin.*` under the names of the Java configuration classes. docs/spark/OPTIONS.md lists all
options; `docs/spark_options.py` makes it, and a test compares the two.

Source: PulsarOptions of the connector `pulsar-spark`.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Final, TypeVar

from pulsar_py.client.brokers.service_url import ServiceUrl
from pulsar_py.common.errors import ConfigurationError, InvalidServiceUrlError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.common.network.unix_sockets import MAX_PATH_BYTES
from pulsar_py.schema import KeyValueEncodingType, SchemaInfo
from pulsar_py.spark.shared.client_settings import ReaderSettings, reader_settings
from pulsar_py.spark.shared.offsets import Edge, UserOffsets, check_topic_name
from pulsar_py.spark.shared.schema_option import parse_schema_option

T = TypeVar("T")

MILLION = 1 << 20

MAX_MILLIS: Final = (1 << 63) - 1
"""Times in options have to be below this: they have 63 bits on the wire, and planning adds one to
an end."""
INPUT_ORDER: Final = "input"
"""The `sequenceOrder` of rows in the order in which a task gets them."""

ALIASES: Final = {
    "subscribe": "topics",
    "subscribepattern": "topicsPattern",
    "startingtimestamp": "startingTime",
    "endingtimestamp": "endingTime",
    "maxoffsetspertrigger": "maxEntriesPerTrigger",
}
"""Names of Spark's Kafka source, in lower case, and ours."""

WITHOUT_EFFECT: Final = frozenset({"includeheaders", "path", "checkpointlocation"})
"""Accepted and ignored: Kafka's switch for headers, which are a column here, and Spark's own."""

CLIENT_PREFIXES: Final = ("pulsar.client.", "pulsar.reader.", "pulsar.producer.", "pulsar.admin.")

METADATA_COLUMNS: Final = (
    "__key",
    "__topic",
    "__messageId",
    "__publishTime",
    "__eventTime",
    "__messageProperties",
)
"""The metadata columns that a read has by default: those of the JVM connector, in its order."""

EXTRA_COLUMNS: Final = (
    "__partition",
    "__ledgerId",
    "__entryId",
    "__batchIndex",
    "__sequenceId",
    "__producerName",
    "__orderingKey",
    "__hasBinaryKey",
    "__schemaVersion",
    "__index",
    "__brokerPublishTime",
    "__replicatedFrom",
    "__isTombstone",
    "__size",
)
"""The metadata columns that the option `columns` can ask for."""

WAITING: Final = "waitingForNonExistedTopic=true waits for one"
"""Advice in errors of a topic that is not there."""


class ValueMode(Enum):
    """The treatment of messages' values: `valueMode`."""

    AUTO = "auto"
    RAW = "raw"


class UndecodableMode(Enum):
    """The treatment of messages that can't be decoded: `undecodable`."""

    FAIL = "fail"
    DROP = "drop"
    COLUMN = "column"


class DeliveryGuarantee(Enum):
    """How often a row may arrive in the topic: `deliveryGuarantee`."""

    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """The addresses of the cluster, and settings of clients."""

    service_url: str
    admin_url: str | None
    # Lower-cased names behind `pulsar.client.` and so on, as given. Tokens are among them.
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    reader: Mapping[str, str] = field(default_factory=dict, repr=False)
    producer: Mapping[str, str] = field(default_factory=dict, repr=False)
    admin: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of a read: names, or a pattern."""

    names: tuple[str, ...] = ()
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """All options of a batch or streaming read, parsed."""

    client: ClientOptions
    reader: ReaderSettings
    topics: Topics
    starting: UserOffsets
    ending: UserOffsets | None
    # Publish times in milliseconds: one for all topics under "", or by topic.
    starting_time_millis: Mapping[str, int]
    ending_time_millis: Mapping[str, int]
    # Milliseconds by which publish times may be out of order, where they bound a batch.
    publish_time_slack_millis: int
    max_bytes_per_trigger: int | None
    max_entries_per_trigger: int | None
    fail_on_data_loss: bool
    poll_timeout_millis: int
    predefined_subscription: str | None
    subscription_prefix: str | None
    waits_for_topics: bool
    # Whether a named topic that is not there is an error as soon as the columns are asked for.
    fails_on_missing_topic: bool
    # Names of metadata columns, in order.
    columns: tuple[str, ...]
    value_mode: ValueMode
    min_partitions: int
    max_bytes_per_partition: int
    is_compacted: bool
    arrow_batch_bytes: int
    undecodable: UndecodableMode
    # Whether filters that Spark pushes down exclude pieces.
    is_pruned: bool
    # The socket of a broker on the same machine that lends its files; None: read through brokers.
    short_circuit_path: str | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str], *, is_streaming: bool) -> ReadOptions:
        """Check the options of a read.

        Raises:
            ConfigurationError: One is unknown, missing, or has a value that is not valid; the
                message names both.
        """
        given = _Given(options)
        client = given.client()
        reader = reader_settings(client.reader)
        reads = cls(
            client=client,
            reader=reader,
            topics=given.topics(),
            starting=given.offsets("startingOffsets", "latest" if is_streaming else "earliest"),
            ending=None if is_streaming else given.offsets("endingOffsets", "latest"),
            starting_time_millis=given.times("startingTime"),
            ending_time_millis=given.times("endingTime"),
            publish_time_slack_millis=given.number("publishTimeSlackMs", 60_000, minimum=0),
            max_bytes_per_trigger=given.limit("maxBytesPerTrigger"),
            max_entries_per_trigger=given.limit("maxEntriesPerTrigger"),
            fail_on_data_loss=given.flag("failOnDataLoss", default=True),
            poll_timeout_millis=given.number("pollTimeoutMs", 120_000, minimum=1),
            predefined_subscription=given.text("predefinedSubscription"),
            subscription_prefix=given.text("subscriptionPrefix") or reader.subscription_prefix,
            waits_for_topics=given.flag("waitingForNonExistedTopic", default=False),
            fails_on_missing_topic=given.flag("failOnMissingTopic", default=False),
            columns=given.columns(),
            value_mode=given.value_mode(),
            min_partitions=given.number("minPartitions", 1, minimum=1),
            max_bytes_per_partition=given.number("maxBytesPerPartition", 128 * MILLION, minimum=1),
            is_compacted=given.flag("readCompacted", default=reader.is_compacted),
            arrow_batch_bytes=given.number("arrowBatchBytes", MILLION, minimum=1, maximum=1 << 30),
            undecodable=given.choice("undecodable", UndecodableMode.FAIL),
            is_pruned=given.flag("pushDown", default=False),
            short_circuit_path=given.socket_path("shortCircuitSocketPath"),
        )
        given.exclude("startingTime", "startingOffsets")
        given.exclude("endingTime", "endingOffsets")
        if is_streaming:
            given.refuse("endingOffsets", "a stream has no end")
            given.refuse("endingTime", "a stream has no end")
            given.refuse("publishTimeSlackMs", "a stream starts where a seek to its time leads")
        elif reads.starting.default is Edge.LATEST:
            raise ConfigurationError(
                "startingOffsets: 'latest' would make the batch empty, it is for streams; give"
                " 'earliest', or positions by topic"
            )
        if reads.ending is not None and reads.ending.default is Edge.EARLIEST:
            raise ConfigurationError(
                "endingOffsets: 'earliest' would make the batch empty; give 'latest', or positions"
                " by topic"
            )
        for name in ("maxBytesPerTrigger", "maxEntriesPerTrigger"):
            if reads.client.admin_url is None and given.limit(name) is not None:
                raise ConfigurationError(
                    f"{name} needs admin.url: the REST API alone knows the sizes of ledgers"
                )
        if reads.waits_for_topics and reads.fails_on_missing_topic:
            raise ConfigurationError(
                "failOnMissingTopic and waitingForNonExistedTopic are both true, and contradict"
                " each other; leave one out"
            )
        given.refuse_unknown(ALIASES)
        return reads


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """All options of a batch or streaming write, parsed."""

    client: ClientOptions
    # None: each row names its topic in `__topic`.
    topic: str | None
    guarantee: DeliveryGuarantee
    # `input`, `content`, or the columns to sort by; None: the option was not given.
    sequence_order: str | tuple[str, ...] | None
    idempotency_key: str | None
    key_column: str
    ordering_key_column: str
    partition_column: str
    deliver_at_column: str
    # None: as in the topic's schema, or in the topic that the rows were read from.
    pairs: KeyValueEncodingType | None
    # For a topic that has no schema yet.
    value_schema: SchemaInfo | None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> WriteOptions:
        """Check the options of a write.

        Raises:
            ConfigurationError: One is unknown, missing, or has a value that is not valid; the
                message names both.
        """
        given = _Given(options)
        writes = cls(
            client=given.client(),
            topic=given.text("topic"),
            guarantee=given.choice("deliveryGuarantee", DeliveryGuarantee.AT_LEAST_ONCE),
            sequence_order=given.sequence_order(),
            idempotency_key=given.text("idempotencyKey"),
            key_column=given.text("keyColumn") or "__key",
            ordering_key_column=given.text("orderingKeyColumn") or "__orderingKey",
            partition_column=given.text("partitionColumn") or "__partition",
            deliver_at_column=given.text("deliverAtColumn") or "__deliverAt",
            pairs=given.pairs(),
            value_schema=given.value_schema(),
        )
        if writes.topic is not None and "," in writes.topic:
            raise ConfigurationError(
                f"topic: {writes.topic!r} has a comma, and a write has one topic; leave the option"
                " out and name the topic of each row in the column __topic"
            )
        if writes.guarantee is DeliveryGuarantee.EXACTLY_ONCE and writes.topic is None:
            raise ConfigurationError(
                "deliveryGuarantee: 'exactly-once' needs the option topic, and writes to one topic"
            )
        given.refuse_unknown({})
        return writes


class _Given:
    """The options as Spark gave them; remembers the names that were asked for."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._values: dict[str, str] = {}
        # Lower-cased names to the spelling that errors use.
        self._known: dict[str, str] = {name: name for name in WITHOUT_EFFECT}
        self._clients: dict[str, dict[str, str]] = {prefix: {} for prefix in CLIENT_PREFIXES}
        for name, value in options.items():
            self._add(name.lower(), value)

    def _add(self, name: str, value: str) -> None:
        for prefix, settings in self._clients.items():
            if name.startswith(prefix):
                settings[name.removeprefix(prefix)] = value
                return
        canonical = ALIASES.get(name, name).lower()
        if canonical in self._values and self._values[canonical] != value:
            raise ConfigurationError(
                f"{ALIASES.get(name, name)} is given twice: {self._values[canonical]!r}"
                f" and {value!r}"
            )
        self._values[canonical] = value

    def text(self, name: str) -> str | None:
        """The value without surrounding blanks; None if it was not given."""
        self._known[name.lower()] = name
        value = self._values.get(name.lower())
        return None if value is None else value.strip()

    def number(self, name: str, default: int, *, minimum: int, maximum: int | None = None) -> int:
        """An integer within bounds."""
        text = self.text(name)
        if text is None:
            return default
        try:
            value = int(text)
        except ValueError:
            raise ConfigurationError(f"{name}: {text!r} is not an integer") from None
        if value < minimum or (maximum is not None and value > maximum):
            bounds = f"at least {minimum}" + ("" if maximum is None else f", at most {maximum}")
            raise ConfigurationError(f"{name}: {value} is out of bounds: {bounds}")
        return value

    def limit(self, name: str) -> int | None:
        """A limit; None for 0, which stands for no limit."""
        return self.number(name, 0, minimum=0) or None

    def flag(self, name: str, *, default: bool) -> bool:
        """`true` or `false`."""
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise ConfigurationError(f"{name}: {text!r} is neither true nor false")
        return text.lower() == "true"

    def socket_path(self, name: str) -> str | None:
        """The path of a Unix domain socket; None if it was not given, or is empty."""
        text = self.text(name)
        if not text:
            return None
        if not text.startswith("/") or "\0" in text:
            raise ConfigurationError(
                f"{name}: {text!r} is not an absolute path; tasks have other working directories"
            )
        if (size := len(os.fsencode(text))) > MAX_PATH_BYTES:
            raise ConfigurationError(
                f"{name}: {text!r} has {size} bytes, a socket's path has at most {MAX_PATH_BYTES}"
            )
        return text

    def choice(self, name: str, default: _E) -> _E:
        """One of an enum's values."""
        text = self.text(name)
        if text is None:
            return default
        kind = type(default)
        try:
            return kind(text.lower())
        except ValueError:
            allowed = ", ".join(each.value for each in kind)
            raise ConfigurationError(f"{name}: {text!r}, expected one of {allowed}") from None

    def client(self) -> ClientOptions:
        """The addresses of the cluster, and the settings of clients."""
        service_url = self.text("service.url")
        if not service_url:
            raise ConfigurationError("service.url is missing: the broker's URL, pulsar://host:6650")
        admin_url = self.text("admin.url")
        _check_url("service.url", service_url)
        if admin_url is not None and not _check_url("admin.url", admin_url).is_http:
            raise ConfigurationError(
                f"admin.url: {admin_url!r} does not begin with http:// or https://"
            )
        client, reader, producer, admin = (self._clients[prefix] for prefix in CLIENT_PREFIXES)
        return ClientOptions(service_url, admin_url, client, reader, producer, admin or client)

    def topics(self) -> Topics:
        """Exactly one of `topic`, `topics` and `topicsPattern`."""
        names = ("topic", "topics", "topicsPattern")
        values = {name: self.text(name) for name in names}
        given = [name for name in names if values[name] is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            near = {each.lower(): each for each in names}
            hints = [f"; {name!r} is not an option{hint}" for name, hint in self._unknown(near)]
            raise ConfigurationError(
                f"exactly one of topic, topics and topicsPattern is needed, found {found}"
                + "".join(hints)
            )
        value = values[given[0]] or ""
        parts = tuple(part.strip() for part in value.split(",") if part.strip())
        if given[0] == "topicsPattern":
            return Topics(pattern=value)
        if not parts:
            raise ConfigurationError(f"{given[0]}: {value!r} names no topic")
        if given[0] == "topic" and len(parts) > 1:
            raise ConfigurationError(
                f"topic: {value!r} has a comma; the option topics takes several names"
            )
        return Topics(names=parts)

    def offsets(self, name: str, default: str) -> UserOffsets:
        """`startingOffsets` or `endingOffsets`."""
        return UserOffsets.parse(self.text(name) or default, name)

    def times(self, name: str) -> Mapping[str, int]:
        """A publish time for all topics, or a JSON object from topics to times."""
        text = self.text(name)
        if text is None:
            return {}
        try:
            parsed = parse_json(text)
        except ValueError:
            parsed = text
        given = parsed if isinstance(parsed, dict) else {"": parsed}
        times: dict[str, int] = {}
        for topic, value in given.items():
            if isinstance(parsed, dict):
                check_topic_name(topic, name)
            millis = _iso_millis(value) if isinstance(value, str) else value
            if type(millis) is not int or not 0 <= millis < MAX_MILLIS:
                raise ConfigurationError(
                    f"{name}: {text!r} is neither a time in milliseconds since 1970, below 2^63,"
                    " nor a date or time such as 2026-01-31T10:00Z, nor a JSON object from topics"
                    " to such times"
                )
            times[topic] = millis
        return times

    def columns(self) -> tuple[str, ...]:
        """The metadata columns that the user asks for."""
        text = self.text("columns")
        if text is None:
            return METADATA_COLUMNS
        if text.lower() == "all":
            return METADATA_COLUMNS + EXTRA_COLUMNS
        by_lower = {name.lower(): name for name in METADATA_COLUMNS + EXTRA_COLUMNS}
        wanted = [part.strip() for part in text.split(",") if part.strip()]
        for index, part in enumerate(wanted):
            if part.lower() in (each.lower() for each in wanted[:index]):
                raise ConfigurationError(f"columns: {part!r} is named twice")
            if part.lower() not in by_lower:
                raise ConfigurationError(
                    f"columns: {part!r} is not a metadata column{_nearest(part.lower(), by_lower)}"
                )
        return tuple(by_lower[part.lower()] for part in wanted)

    def value_mode(self) -> ValueMode:
        """`valueMode`, or what `allowDifferentTopicSchemas` implies."""
        mode = self.choice("valueMode", ValueMode.AUTO)
        return ValueMode.RAW if self.flag("allowDifferentTopicSchemas", default=False) else mode

    def sequence_order(self) -> str | tuple[str, ...] | None:
        """`input`, `content` or `columns:a,b`."""
        text = self.text("sequenceOrder")
        if text is None:
            return None
        kind, _, names = text.partition(":")
        columns = tuple(part.strip() for part in names.split(",") if part.strip())
        if kind == "columns" and columns:
            return columns
        if text in (INPUT_ORDER, "content"):
            return text
        raise ConfigurationError(
            f"sequenceOrder: {text!r}, expected input, content or columns:<name>,<name>"
        )

    def pairs(self) -> KeyValueEncodingType | None:
        """`keyValueEncoding`."""
        text = self.text("keyValueEncoding")
        if text is None:
            return None
        if text.upper() not in KeyValueEncodingType.__members__:
            raise ConfigurationError(f"keyValueEncoding: {text!r}, expected inline or separated")
        return KeyValueEncodingType[text.upper()]

    def value_schema(self) -> SchemaInfo | None:
        """`valueSchema`."""
        text = self.text("valueSchema")
        return None if text is None else parse_schema_option("valueSchema", text)

    def exclude(self, name: str, other: str) -> None:
        """Refuse two options that contradict each other."""
        if name.lower() in self._values and other.lower() in self._values:
            raise ConfigurationError(
                f"{name} and {other} are both given, and contradict each other; leave one out"
            )

    def refuse(self, name: str, why: str) -> None:
        """Refuse an option that is not allowed for this query."""
        self._known[name.lower()] = name
        if name.lower() in self._values:
            raise ConfigurationError(f"{name}: {self._values[name.lower()]!r}: {why}")

    def _unknown(self, known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Names that were not asked for yet and are near one of these, each with the hint."""
        for name in self._values:
            if name not in self._known and (hint := _nearest(name, known)):
                yield name, hint

    def refuse_unknown(self, aliases: Mapping[str, str]) -> None:
        """Refuse names that were not asked for; the error proposes one of these or of `aliases`."""
        for name in self._values:
            if name not in self._known:
                raise ConfigurationError(
                    f"unknown option {name!r}{_nearest(name, {**self._known, **aliases})}"
                )


_E = TypeVar("_E", bound=Enum)


def _check_url(option: str, text: str) -> ServiceUrl:
    try:
        return ServiceUrl.parse(text)
    except InvalidServiceUrlError as error:
        why = str(error).removeprefix("service_url=")
        raise ConfigurationError(f"{option}: {why}") from error


def _nearest(name: str, known: Mapping[str, str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f", did you mean {known[close[0]]!r}?" if close else ""


def _iso_millis(text: str) -> int | None:
    """The milliseconds since 1970 of an ISO date or time, in UTC without a zone; None of others."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)
