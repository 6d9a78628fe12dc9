"""What all pipelines are told, and the texts it comes in (pure).

`Cluster` says where topics are and becomes options of the connector. Times, lengths of time and
sizes have one text form for all commands: `2026-01-31T10:00Z`, milliseconds, `-2h` before now;
`90s`; `128MiB`.
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
"""Options that may name topics, in lower case."""
POSITION_COLUMNS: Final = ("__ledgerId", "__entryId", "__batchIndex")
"""The order of a topic partition's log."""


class Guarantee(Enum):
    """How often a row may arrive in a topic."""

    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where topics are."""

    service_url: str
    admin_url: str | None = None
    # Further options of the connector, `pulsar.client.*` above all.
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def connector_options(self) -> dict[str, str]:
        """What the connector is told of it."""
        options = {**self.options, "service.url": self.service_url}
        if self.admin_url is not None:
            options["admin.url"] = self.admin_url
        return options


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRange:
    """What is read: topics, and from when to when they were published."""

    cluster: Cluster
    topic: str
    """A name, several separated by commas, or a pattern after `pattern:`."""
    starting_millis: int | None = None
    ending_millis: int | None = None
    starting_offsets: str | None = None
    ending_offsets: str | None = None
    columns: Sequence[str] = ()
    """Metadata columns beside those that come anyway; `all` for all."""
    is_raw: bool = False
    """Values are bytes, whatever the schema."""
    max_entries_per_batch: int | None = None
    max_bytes_per_batch: int | None = None

    def connector_options(self, *, is_streaming: bool) -> dict[str, str]:
        """Options of a read."""
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
        """Whether that topic, or that partition of one, is among those that are read.

        Raises:
            ConfigurationError: The pattern is none.
            InvalidTopicNameError: One of the names is none.
        """
        kind, text = topic_option(self.topic)
        name = TopicName.parse(topic).base
        if kind != "topicsPattern":
            return any(each.base == name for each in _named(text))
        return TopicPattern(text, RegexSubscriptionMode.PersistentOnly).matches(name)

    def of_partition(self, partition: str) -> TopicRange:
        """The same of one of its topic partitions alone."""
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
        """What producers of a batch of this range are named by: name, and what is read.

        Two batches under one name would have the same sequence ids, and one's rows would be dropped
        as the other's. None stays None.

        Args:
            name: As the user gave it.
            more: What else tells which rows are sent, in which order.
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
    """What is written."""

    cluster: Cluster
    topic: str
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    idempotency_key: str | None = None
    sequence_order: str = "input"
    """The connector's `sequenceOrder`, exactly once; rows of topics and files come as before."""
    has_binary_keys: bool = False
    """All keys are bytes, which clients of other languages see as base64; otherwise each is what it
    was where it was read, or a text."""
    value_schema: str | None = None
    """The connector's `valueSchema`: of a topic that has none."""

    def connector_options(self) -> dict[str, str]:
        """Options of a write."""
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
    """Name of a job, and what tells it from others under that name, as one name of producers."""
    return f"{name}-{sha256(what.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"


def _named(topics: str) -> list[TopicName]:
    return [TopicName.parse(each.strip()) for each in topics.split(",") if each.strip()]


def _of_partition(text: str | None, partition: str) -> str | None:
    """What a place or time that may be JSON from topics says of one partition; None if nothing."""
    if text is None or not text.lstrip().startswith("{"):
        return text
    try:
        places = dict(parse_json(text))
    except ValueError:
        return text  # refused where it is read
    own = (TopicName.parse(partition), TopicName.parse(partition).base)
    kept = {name: place for name, place in places.items() if TopicName.parse(name) in own}
    return json.dumps(kept) if kept else None


def topic_option(text: str) -> tuple[str, str]:
    """The connector's option for topics given as one text."""
    if text.startswith("pattern:"):
        return "topicsPattern", text.removeprefix("pattern:")
    return ("topics" if "," in text else "topic"), text
