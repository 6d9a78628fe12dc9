"""Settings of topics: the cluster, the range that is read, the topic that is written (pure).

Each becomes options of the Spark connector by `connector_options`. A `TopicRange` and a name that
the user gives also make the names of the producers of a batch, by `TopicRange.key`: the same name
and range always give the same producers, which is what the broker's deduplication needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from hashlib import sha256
from typing import Final

from pulsar_py.client.many_topics.topic_lists import TopicPattern
from pulsar_py.client.shared.enums import RegexSubscriptionMode
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.common.names import TopicName

_PLACES: Final = frozenset(
    {"startingoffsets", "endingoffsets", "startingtime", "endingtime"}
    | {"startingtimestamp", "endingtimestamp"}
)
"""Options whose values may be JSON objects with topics for keys; in lower case."""

POSITION_COLUMNS: Final = ("__ledgerId", "__entryId", "__batchIndex")
"""The columns that order the messages of one topic partition."""


class Guarantee(Enum):
    """How often a row may arrive in a topic."""

    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A Pulsar cluster, and how its brokers are reached."""

    service_url: str
    admin_url: str | None = None
    # Further options of the connector, mostly `pulsar.client.*`; hidden because they have tokens.
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def connector_options(self) -> dict[str, str]:
        """The connector's options that say where the cluster is."""
        options = {**self.options, "service.url": self.service_url}
        if self.admin_url is not None:
            options["admin.url"] = self.admin_url
        return options


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRange:
    """The topics that are read, and the publish times or offsets between which they are."""

    cluster: Cluster
    topic: str
    """A name, several separated by commas, or a pattern after `pattern:`."""
    starting_millis: int | None = None
    ending_millis: int | None = None
    starting_offsets: str | None = None
    ending_offsets: str | None = None
    columns: Sequence[str] = ()
    """Metadata columns beside the connector's default ones; `all` for all."""
    is_raw: bool = False
    """Values are read as bytes, whatever the topic's schema is."""
    max_entries_per_batch: int | None = None
    max_bytes_per_batch: int | None = None

    def connector_options(self, *, is_streaming: bool) -> dict[str, str]:
        """The connector's options for reading this range.

        A stream without a start reads from the earliest message, where the connector's own default
        is the latest one.
        """
        kind, topics = topic_option(self.topic)
        options = self.cluster.connector_options() | {kind: topics}
        named: dict[str, object | None] = {
            "startingTime": self.starting_millis,
            "endingTime": self.ending_millis,
            "startingOffsets": self.starting_offsets,
            "endingOffsets": self.ending_offsets,
            "valueMode": "raw" if self.is_raw else None,
            "columns": ",".join(self.columns) or None,
        }
        if is_streaming:
            if self.starting_millis is None and self.starting_offsets is None:
                named["startingOffsets"] = "earliest"
            named["maxEntriesPerTrigger"] = self.max_entries_per_batch
            named["maxBytesPerTrigger"] = self.max_bytes_per_batch
        return options | {name: str(value) for name, value in named.items() if value is not None}

    def reads(self, topic: str) -> bool:
        """Whether the range has this topic, or the topic that this is a partition of.

        Raises:
            ConfigurationError: The pattern is not a regular expression.
            InvalidTopicNameError: One of the names is not a topic name.
        """
        kind, text = topic_option(self.topic)
        name = TopicName.parse(topic).base
        if kind != "topicsPattern":
            return any(each.base == name for each in _named(text))
        return TopicPattern(text, RegexSubscriptionMode.PersistentOnly).matches(name)

    def of_partition(self, partition: str) -> TopicRange:
        """The same range of one topic partition.

        Starts and ends that are given by topic keep the entries of this one alone.
        """
        options = {
            name: _of_partition(text, partition) if name.lower() in _PLACES else text
            for name, text in self.cluster.options.items()
        }
        kept = {name: text for name, text in options.items() if text is not None}
        return replace(
            self,
            cluster=replace(self.cluster, options=kept),
            topic=partition,
            starting_offsets=_of_partition(self.starting_offsets, partition),
            ending_offsets=_of_partition(self.ending_offsets, partition),
        )

    def key(self, name: str | None, *more: object) -> str | None:
        """The idempotency key of a batch of this range: the user's name and a digest of the range.

        Without the digest two batches under one name would have the same sequence ids, and the
        broker would drop the rows of one as repetitions of the other's.

        Args:
            name: The name that the user gave; None gives None.
            more: Other settings that decide which rows are sent, and in which order.
        """
        if name is None:
            return None
        kind, topics = topic_option(self.topic)
        if kind != "topicsPattern":
            topics = ",".join(sorted(map(str, _named(topics))))
        times = (self.starting_millis, self.ending_millis)
        offsets = (self.starting_offsets, self.ending_offsets)
        read = repr((self.cluster.service_url, kind, topics, *times, *offsets, *more))
        return job_key(name, read)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTarget:
    """The topic that is written, and how."""

    cluster: Cluster
    topic: str
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    idempotency_key: str | None = None
    sequence_order: str = "input"
    """The connector's `sequenceOrder`, used exactly once alone. `input` suits rows that come in the
    same order in each attempt, as those of topics and files do."""
    has_binary_keys: bool = False
    """Send all keys as bytes, which clients see as base64; otherwise a key is sent as it was read,
    as bytes or text, and as text where the rows don't say."""
    value_schema: str | None = None
    """The connector's `valueSchema`, which a topic without a schema gets."""

    def connector_options(self) -> dict[str, str]:
        """The connector's options for writing this topic."""
        options = self.cluster.connector_options() | {
            "topic": self.topic,
            "deliveryGuarantee": self.guarantee.value,
        }
        if self.idempotency_key is not None:
            options["idempotencyKey"] = self.idempotency_key
        if self.guarantee is Guarantee.EXACTLY_ONCE:
            options["sequenceOrder"] = self.sequence_order
        if self.value_schema is not None:
            options["valueSchema"] = self.value_schema
        return options


def job_key(name: str, what: str) -> str:
    """The idempotency key of a job: its name, and a digest of what else identifies it.

    Args:
        name: The name that the user gave.
        what: A text that differs for each job that may have the same name.
    """
    return f"{name}-{sha256(what.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"


def _named(topics: str) -> list[TopicName]:
    return [TopicName.parse(each.strip()) for each in topics.split(",") if each.strip()]


def _of_partition(text: str | None, partition: str) -> str | None:
    """One partition's part of a start or end, which may be a JSON object by topic.

    None if the object has neither the partition nor its topic.
    """
    if text is None or not text.lstrip().startswith("{"):
        return text
    try:
        places = dict(parse_json(text))
    except ValueError:
        return text  # the connector refuses it, with its own error
    own = (TopicName.parse(partition), TopicName.parse(partition).base)
    kept = {name: place for name, place in places.items() if TopicName.parse(name) in own}
    return json.dumps(kept) if kept else None


def topic_option(text: str) -> tuple[str, str]:
    """The name and value of the connector's option: `topic`, `topics` or `topicsPattern`."""
    if text.startswith("pattern:"):
        return "topicsPattern", text.removeprefix("pattern:")
    return ("topics" if "," in text else "topic"), text
