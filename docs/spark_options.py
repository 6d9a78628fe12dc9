"""The reference of the Spark connector's options, made from tables here and from the code.

`python -m docs.generate` (`make docs`) writes `docs/spark/OPTIONS.md`; a test fails when it is
stale, when an option of the code has no line here or the other way round, and when a default is
not what the code takes. Names, types and values that the code has in a table come from there.
"""  # noqa: INP001 - tools of the checkout, no package

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pulsar_py.client.shared.enums import CompressionType, HashingScheme
from pulsar_py.spark.shared.client_settings import (
    CLIENT_WITHOUT_EFFECT,
    PRODUCER_WITHOUT_EFFECT,
    READER_WITHOUT_EFFECT,
)
from pulsar_py.spark.shared.options import ALIASES, METADATA_COLUMNS
from pulsar_py.spark.values.metadata_columns import COLUMNS

PATH: Final = Path("docs/spark/OPTIONS.md")
LINE_LENGTH: Final = 120
BOTH, BATCH, STREAM = "batch, stream", "batch", "stream"


@dataclass(frozen=True, slots=True)
class Option:
    """One line of a table."""

    name: str
    value: str
    # As it would be given; None: there is none.
    default: str | None
    where: str
    meaning: str


Settings = Mapping[str, tuple[str, str | None, str]]
"""Names to values, default and meaning."""

FLAG: Final = "true, false"

_TIME = "ms since 1970, a date or time as `2026-01-31T10:00Z`, or JSON by topic"

READS: Final = (
    Option("service.url", "URL", None, BOTH, "the broker, `pulsar://` or `pulsar+ssl://`; needed"),
    Option(
        "admin.url", "URL", None, BOTH,
        "the broker's `http://` or `https://`; asked for ledgers and their sizes, to divide a read"
        " into tasks, to limit micro-batches and to notice deleted entries",
    ),
    Option(
        "topic", "name", None, BOTH,
        "the topic that is read; exactly one of `topic`, `topics` and `topicsPattern` is needed",
    ),
    Option("topics", "names, with commas", None, BOTH, "the topics that are read"),
    Option(
        "topicsPattern", "regular expression", None, BOTH,
        "all topics of a namespace whose whole name matches; a stream reads later ones, too",
    ),
    Option(
        "startingOffsets", "`earliest`, `latest`, [JSON](#positions)", None, BOTH,
        "first message, inclusive; unless given `earliest` for a batch, `latest` for a stream; a"
        " stream with a checkpoint goes on from there",
    ),
    Option(
        "endingOffsets", "`earliest`, `latest`, [JSON](#positions)", "latest", BATCH,
        "last message, inclusive, with all of its entry; `earliest` by topic only",
    ),
    Option(
        "startingTime", _TIME, None, BOTH,
        "first publish time, inclusive; not with `startingOffsets`",
    ),
    Option(
        "endingTime", _TIME, None, BATCH,
        "last publish time, inclusive; not with `endingOffsets`",
    ),
    Option(
        "publishTimeSlackMs", "ms", "60000", BATCH,
        "how far publish times may be out of order; for the two above and `pushDown`",
    ),
    Option(
        "maxEntriesPerTrigger", "entries, 0: no limit", "0", STREAM,
        "limit of a micro-batch; an entry is a batch of a producer; needs `admin.url`",
    ),
    Option(
        "maxBytesPerTrigger", "bytes as stored, 0: no limit", "0", STREAM,
        "limit of a micro-batch; needs `admin.url`",
    ),
    Option(
        "failOnDataLoss", FLAG, "true", BOTH,
        "whether deleted entries and topics are errors, or warnings",
    ),
    Option(
        "waitingForNonExistedTopic", FLAG, "false", BOTH,
        "whether a start waits until all topics are there, or fails",
    ),
    Option(
        "failOnMissingTopic", FLAG, "false", BOTH,
        "whether `load()` fails where one of the named topics is not there, or none matches the"
        " pattern; otherwise `load()` fails only without any topic, and the query for the others",
    ),
    Option(
        "predefinedSubscription", "name", None, STREAM,
        "a subscription that follows the query, so that what is unread is kept; made if it is not"
        " there",
    ),
    Option(
        "subscriptionPrefix", "text", None, BOTH,
        "first part of the readers' subscription names in the broker's statistics, before a number;"
        " `spark-pulsar` unless given",
    ),
    Option(
        "pollTimeoutMs", "ms", "120000", BOTH,
        "without a message for so long, a task fails",
    ),
    Option(
        "columns", "names with commas, `all`, or nothing", ",".join(METADATA_COLUMNS), BOTH,
        "[metadata columns](#metadata-columns), in this order, behind those of the value",
    ),
    Option(
        "valueMode", "see [below](#values)", "auto", BOTH,
        "which columns a message's value has",
    ),
    Option("allowDifferentTopicSchemas", FLAG, "false", BOTH, "true is `valueMode=raw`"),
    Option(
        "undecodable", "see [below](#values)", "fail", BOTH,
        "what becomes of messages that can't be decoded",
    ),
    Option(
        "readCompacted", FLAG, "false", BOTH,
        "only the newest message of each key, as far as the broker compacted the topic",
    ),
    Option(
        "minPartitions", "tasks", "1", BOTH,
        "at least so many, as far as there are entries; no effect without `admin.url`",
    ),
    Option(
        "maxBytesPerPartition", "bytes as stored", "134217728", BATCH,
        "limit of a task; no effect without `admin.url`",
    ),
    Option(
        "arrowBatchBytes", "bytes, at most 1 GiB", "1048576", BOTH,
        "size of the record batches that Spark gets",
    ),
    Option(
        "pushDown", FLAG, "false", BATCH,
        "whether pieces that the filters rule out are not read; needs"
        " `spark.sql.python.filterPushdown.enabled=true`, too",
    ),
    Option(
        "shortCircuitSocketPath", "absolute path", None, BOTH,
        "the broker's setting of that name: tasks on its machine read its files"
        " ([guide](GUIDE.md#short-circuit-reads)); needs `admin.url`",
    ),
)  # fmt: skip

WRITES: Final = (
    Option("service.url", "URL", None, BOTH, "the broker, `pulsar://` or `pulsar+ssl://`; needed"),
    Option(
        "admin.url", "URL", None, BOTH,
        "the broker's `http://` or `https://`; needed for exactly once",
    ),
    Option(
        "topic", "name", None, BOTH,
        "where rows go; without it each names its topic in `__topic`",
    ),
    Option(
        "deliveryGuarantee", "see [below](#values)", "at-least-once", BOTH,
        "how often a row may arrive",
    ),
    Option(
        "sequenceOrder", "see [below](#values)", None, BOTH,
        "how rows of a task are numbered; needed for exactly once",
    ),
    Option(
        "idempotencyKey", "text", None, BOTH,
        "names a job that writes exactly once: a batch that is run again under the same key sends"
        " only what is missing. A stream is told by its checkpoint, with a key or without; each"
        " write of a `foreachBatch` needs a key of its own",
    ),
    Option("keyColumn", "column", "__key", BOTH, "the message's key"),
    Option("orderingKeyColumn", "column", "__orderingKey", BOTH, "its ordering key"),
    Option("partitionColumn", "column", "__partition", BOTH, "the partition it goes to"),
    Option("deliverAtColumn", "column", "__deliverAt", BOTH, "when it may be delivered"),
    Option(
        "keyValueEncoding", "see [below](#values)", None, BOTH,
        "gives a new topic a schema of keys and values; unless given, as the topic has it, or the"
        " one that was read",
    ),
    Option(
        "valueSchema", "see [below](#values)", None, BOTH,
        "the schema of a topic that has none",
    ),
)  # fmt: skip

ALSO_TAKEN: Final = {
    "includeHeaders": "Kafka's",
    "path": "Spark's",
    "checkpointLocation": "Spark's own, of streams",
}
"""Options without an effect on the connector."""

VALUES: Final[Mapping[str, Mapping[str, str]]] = {
    "valueMode": {
        "auto": "columns by the topic's schema",
        "raw": "one column `value` of bytes, whatever the schema; topics may have different ones",
    },
    "undecodable": {
        "fail": "the query fails, with topic and message id",
        "drop": "they are left out, and counted in the log",
        "column": "a column `__undecodable` has their bytes, and those of the value are null; it"
        " is null otherwise",
    },
    "deliveryGuarantee": {
        "at-least-once": "a task that is repeated writes its rows again",
        "exactly-once": "once, if the broker drops duplicates on the topic; needs `topic`,"
        " `admin.url` and"
        " `sequenceOrder`",
    },
    "sequenceOrder": {
        "input": "as rows come; for rows that nothing shuffles on their way from a topic or a file",
        "content": "sorted by all that is written of them, in memory; for rows behind a shuffle",
        "columns:a,b": "sorted by these columns first, then by content",
    },
    "keyValueEncoding": {
        "inline": "key and value stand in the payload",
        "separated": "the key is the message's own, which decides its partition",
    },
    "valueSchema": {
        '{"type": "AVRO", "schema": "{...}", "properties": {}}': (
            "JSON as `pulsar-admin schemas upload` takes it; `schema` is the definition as text, or"
            " `data` has it in base64; `name` may be given"
        ),
    },
}

METADATA: Final = {
    "__key": "the key's bytes; `cast(__key AS string)` is the text",
    "__topic": "the topic's full name, with `-partition-N` for one of several",
    "__messageId": "the serialized id, as clients of all languages parse it",
    "__publishTime": "by the producer's clock",
    "__eventTime": "as the producer gave it",
    "__messageProperties": "the message's properties",
    "__partition": "the number of the partition; null for a topic without partitions",
    "__ledgerId": "first part of the position",
    "__entryId": "second part of the position",
    "__batchIndex": "the message's place in its entry; null for one that is not batched",
    "__sequenceId": "the sequence id that the producer gave the message",
    "__producerName": "the name of the producer that sent it",
    "__orderingKey": "by which Key_Shared subscriptions choose the consumer, instead of `__key`",
    "__hasBinaryKey": "whether the key is bytes, which Java calls base64-encoded; texts otherwise",
    "__schemaVersion": "of the schema it was written with, as the broker numbers them",
    "__index": "the message's number in its topic, if the broker counts (broker entry metadata)",
    "__brokerPublishTime": "by the broker's clock, if it says so (broker entry metadata)",
    "__replicatedFrom": "the cluster it came from",
    "__isTombstone": "whether it has no value at all",
    "__size": "bytes of the payload",
}
"""What a column of a read says of its message; null where the message has no such thing."""

WRITTEN: Final = {
    "__key": ("string, binary", "`keyColumn`"),
    "__orderingKey": ("string, binary", "`orderingKeyColumn`"),
    "__eventTime": ("timestamp, bigint of ms", ""),
    "__messageProperties": ("map<string, string>", ""),
    "__topic": ("string", "only without the option `topic`"),
    "__partition": ("integer of any size", "`partitionColumn`"),
    "__deliverAt": ("timestamp, bigint of ms", "`deliverAtColumn`"),
    "__isTombstone": ("boolean", "true: no value"),
    "__hasBinaryKey": ("boolean", "true: the key is bytes; without the column its type says so"),
}
"""Columns of a write that are metadata: their types, and the option that names another."""

CLIENT_SETTINGS: Final[Settings] = {
    "authPluginClassName": (
        "name", None,
        "`token`, `tls`, `basic`, `oauth2`, or the Java class",
    ),
    "authParams": (
        "text", None,
        "what that one takes: `token:...`, `file:///path`, `tlsCertFile:...,tlsKeyFile:...`, JSON",
    ),
    "operationTimeoutMs": ("ms", "30000", "for one operation, attempts and pauses included"),
    "connectionTimeoutMs": ("ms", "10000", "for a connection to come up"),
    "connectionsPerBroker": ("number", "1", "among which topics are spread"),
    "concurrentLookupRequest": ("number", "50000", "lookups at a time"),
    "maxLookupRedirects": ("number", "20", "from broker to broker, for one lookup"),
    "keepAliveIntervalSeconds": ("s", "30", "of silence, until the broker is sent a PING"),
    "connectionMaxIdleSeconds": ("s", "60", "until an unused connection is closed"),
    "initialBackoffIntervalNanos": ("ns", "100000000", "pause after the first failure"),
    "maxBackoffIntervalNanos": (
        "ns", None, "longest pause; 2 s where nobody answers, 60 s where a broker refuses for now",
    ),
    "memoryLimitBytes": ("bytes", "67108864", "for messages that are under way"),
    "statsIntervalSeconds": ("s", "600", "between lines of statistics in the log"),
    "listenerName": ("name", None, "which of a broker's advertised addresses is taken"),
    "tlsTrustCertsFilePath": ("path", None, "certificates that are trusted; on executors, too"),
    "tlsAllowInsecureConnection": (FLAG, "false", "whether any certificate is accepted"),
    "tlsHostnameVerificationEnable": (FLAG, "false", "whether it has to name the broker's host"),
    "tlsCertificateFilePath": ("path", None, "the client's own certificate"),
    "tlsKeyFilePath": ("path", None, "its key"),
}  # fmt: skip

READER_SETTINGS: Final[Settings] = {
    "receiverQueueSize": ("messages", None, "at most so many wait unread; fewer if they are large"),
    "readerName": ("text", None, "what the broker's statistics call the consumer"),
    "subscriptionRolePrefix": ("text", None, "as `subscriptionPrefix`, which goes before it"),
    "readCompacted": (FLAG, "false", "as the option `readCompacted`, which goes before it"),
}

PRODUCER_SETTINGS: Final[Settings] = {
    "producerName": ("text", None, "refused with exactly once, which has names of its own"),
    "sendTimeoutMs": ("ms", "30000", "until rows under way have their receipts; 0: for ever"),
    "maxPendingMessages": ("messages", None, "no effect: the connector bounds what is under way"),
    "maxPendingMessagesAcrossPartitions": ("messages", None, "no effect, as above"),
    "batchingEnabled": (FLAG, "true", "false unless given where `chunkingEnabled` is true"),
    "batchingMaxMessages": ("messages", "1000", "of an entry"),
    "batchingMaxBytes": ("bytes", "1048576", "of an entry"),
    "batchingMaxPublishDelayMicros": ("us", "100000", "of a row that waits; not exactly once"),
    "chunkingEnabled": (FLAG, "false", "whether large rows are sent in chunks"),
    "compressionType": (", ".join(each.name for each in CompressionType), "NONE", "of entries"),
    "hashingScheme": (
        ", ".join(each.name for each in HashingScheme), "JavaStringHash",
        "from keys to partitions",
    ),
}  # fmt: skip

PREFIXES: Final[Mapping[str, tuple[str, Settings, Collection[str]]]] = {
    "pulsar.client.": ("of all clients; reads and writes", CLIENT_SETTINGS, CLIENT_WITHOUT_EFFECT),
    "pulsar.reader.": ("of readers; reads", READER_SETTINGS, READER_WITHOUT_EFFECT),
    "pulsar.producer.": ("of producers; writes", PRODUCER_SETTINGS, PRODUCER_WITHOUT_EFFECT),
}  # fmt: skip


def main() -> None:
    """Write the page below the working directory."""
    PATH.write_text(render(), encoding="utf-8")


def render() -> str:
    """The text of the page."""
    return "\n".join([*_head(), *_reads(), *_writes(), *_values(), *_clients()]) + "\n"


def _head() -> list[str]:
    return [
        "# Options of the Spark connector",
        "",
        "Made from the code by `make docs`. [The guide](GUIDE.md) says how they go together.",
        "",
        *_prose(
            "Names may be written in any case. An unknown one is an error that proposes the"
            " nearest,"
            " and a value that is not allowed is an error, too, before a broker is asked. *Where*"
            " says what an option has an effect on."
        ),
    ]


def _reads() -> list[str]:
    return [
        "",
        "## Reads",
        "",
        "`spark.read` and `spark.readStream`. *Also* is Kafka's name.",
        "",
        *_table(
            ("option", "also", "value", "default", "where", "meaning"),
            (
                (
                    _code(each.name),
                    _also(each.name),
                    each.value,
                    _default(each),
                    each.where,
                    each.meaning,
                )
                for each in READS
            ),
        ),
        "",
        f"Taken, and without an effect: {_without_effect()}.",
        "",
        "### Positions",
        "",
        *_prose(
            "JSON from topics, or partitions of them, to places; a topic that is not named is read"
            " as it would be without the option. Both ends are inclusive:"
        ),
        "",
        '    {"persistent://public/default/events": "12:345", "visits": "earliest"}',
        "",
        *_table(
            ("place", "meaning"),
            (
                ("`earliest`, `latest`", "the topic's ends"),
                ("`12:345`", "ledger and entry, as `__ledgerId` and `__entryId` have them"),
                (
                    "`12:345:6`",
                    "a message of that entry, as `__batchIndex` has it; an end takes all of it",
                ),
                ("`[8, 12, 16, ...]`", "a serialized message id, as `pulsar-spark` writes it"),
            ),
        ),
        "",
        "### Metadata columns",
        "",
        "*Usual* ones come unless `columns` says otherwise; what a message lacks is null.",
        "",
        *_table(
            ("column", "type", "usual", "meaning"),
            (
                (
                    _code(name),
                    _code(column.ddl),
                    "yes" if name in METADATA_COLUMNS else "",
                    METADATA[name],
                )
                for name, column in COLUMNS.items()
            ),
        ),
    ]  # fmt: skip


def _writes() -> list[str]:
    return [
        "",
        "## Writes",
        "",
        "`df.write` and `df.writeStream`.",
        "",
        *_table(
            ("option", "value", "default", "where", "meaning"),
            (
                (_code(each.name), each.value, _default(each), each.where, each.meaning)
                for each in WRITES
            ),
        ),
        "",
        f"Taken, and without an effect: {_without_effect()}.",
        "",
        *_prose(
            "These columns of the rows are metadata. Others that a read has are not sent, because"
            " only a broker sets them; all that remain are the value."
        ),
        "",
        *_table(
            ("column", "type", "option that names another, or a remark"),
            ((_code(name), _code(kind), text) for name, (kind, text) in WRITTEN.items()),
        ),
    ]


def _values() -> list[str]:
    lines = ["", "## Values"]
    for name, values in VALUES.items():
        rows = ((_code(value), meaning) for value, meaning in values.items())
        lines += ["", *_table((_code(name), "meaning"), rows)]
    return lines


def _clients() -> list[str]:
    lines = [
        "",
        "## Settings of clients",
        "",
        *_prose(
            "Behind a prefix stand the names of Java's configuration classes. What is without an"
            " effect is for the JVM's threads and sockets, or the connector's affair. So is all"
            " behind `pulsar.admin.`: requests to `admin.url` go by `pulsar.client.`."
        ),
    ]
    for prefix, (what, settings, without_effect) in PREFIXES.items():
        lines += ["", f"### {prefix.rstrip('.')}", "", f"Settings {what}.", ""]
        lines += _table(
            ("setting", "value", "default", "meaning"),
            (
                (_code(f"{prefix}{name}"), value, "" if default is None else _code(default), text)
                for name, (value, default, text) in settings.items()
            ),
        )
        names = ", ".join(_code(f"{prefix}{name}") for name in sorted(without_effect))
        lines += ["", f"Without an effect: {names}."]
    return lines


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(each)} |" for each in lines]


def _prose(text: str) -> list[str]:
    return textwrap.wrap(text, LINE_LENGTH)


def _code(text: str) -> str:
    return f"`{text}`"


def _default(option: Option) -> str:
    if option.name == "columns":
        return "the usual six"
    return "" if option.default is None else _code(option.default)


def _also(name: str) -> str:
    return ", ".join(_code(KAFKAS[alias]) for alias, ours in ALIASES.items() if ours == name)


KAFKAS: Final = {
    name.lower(): name
    for name in (
        "subscribe",
        "subscribePattern",
        "startingTimestamp",
        "endingTimestamp",
        "maxOffsetsPerTrigger",
    )
}
"""As Kafka writes them."""


def _without_effect() -> str:
    return ", ".join(f"{_code(name)} ({why})" for name, why in ALSO_TAKEN.items())
