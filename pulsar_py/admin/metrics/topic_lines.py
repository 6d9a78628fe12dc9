"""`TopicFigures`: the values of all topics at one scrape, and the text made of them.

Values lie in flat arrays of 8 bytes each, a row for each topic, subscription, consumer or producer,
beside the text of its labels: 10,000 topics with a subscription each are 10 MB. A metric is a
column, which is cut out only while its lines are made. With `by_topic` False the rows are those of
namespaces, sums over their topics, and nothing smaller is kept; no name is shown for both.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from pulsar_py.admin.metrics.text_format import chunks, escaped, labels_text, type_line
from pulsar_py.admin.metrics.topic_names import (
    COMPACTION_NAMES,
    CONSUMER_NAMES,
    PRODUCER_NAMES,
    SUBSCRIPTION_NAMES,
    SUBSCRIPTION_SUMS,
    THROTTLED_NAMES,
    TOPIC_NAMES,
    TOPIC_SUMS,
    WRITTEN_NAMES,
    compaction_values,
    consumer_values,
    joined_values,
    producer_values,
    subscription_values,
    throttled_values,
    topic_values,
    written_values,
)
from pulsar_py.common.names import TopicName
from pulsar_py.managed_ledger.log.write_figures import NOTHING_WRITTEN
from pulsar_py.server.subscriptions.subscription_stats import SubscriptionStats
from pulsar_py.server.topics.stats import TopicStats

_BACKLOG: Final = "pulsar_msg_backlog"


class Table:
    """Rows of values with labels, all of the same names."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.labels: list[str] = []
        self._values = array("d")
        self._zeros = array("d", bytes(8 * len(names)))

    def add(self, labels: str, values: tuple[float, ...]) -> None:
        """Add a row; `labels` without braces."""
        self.add_row(f"{{{labels}}}", values)

    def add_row(self, labels: str, values: tuple[float, ...] | None) -> None:
        """Add a row; `labels` in braces, no values mean that all are 0."""
        self.labels.append(labels)
        if values is None:
            self._values += self._zeros
            return
        assert len(values) == len(self.names), f"{len(values)} values, {len(self.names)} names"
        self._values.extend(values)

    def column(self, name: str) -> array[float]:
        """The values of one name, in the order of the labels."""
        return self._values[self.names.index(name) :: len(self.names)]

    def pieces(self, without: tuple[str, ...] = ()) -> Iterator[str]:
        """The lines of all names but some, a chunk at a time; nothing without rows."""
        for name in self.names if self.labels else ():
            if name not in without:
                yield type_line(name, "gauge")
                yield from chunks(name, self.labels, self.column(name))


class Selection(Struct, frozen=True, kw_only=True):
    """Which lines are shown, by the settings.

    Attributes:
        by_topic: Lines of topics and what belongs to them, in place of those of namespaces.
        consumers: Those of consumers, too.
        producers: Those of producers, too.
        splits_partitions: A partition has its topic's name and a label `partition`; -1 for others.
    """

    by_topic: bool = True
    consumers: bool = False
    producers: bool = False
    splits_partitions: bool = False


class TopicFigures(Struct):
    """The values of one scrape; filled topic by topic, then written out."""

    cluster: str
    selection: Selection
    topics: Table = field(default_factory=lambda: Table(TOPIC_NAMES))
    written: Table = field(default_factory=lambda: Table(WRITTEN_NAMES))
    compactions: Table = field(default_factory=lambda: Table(COMPACTION_NAMES))
    subscriptions: Table = field(default_factory=lambda: Table(SUBSCRIPTION_NAMES))
    throttled: Table = field(default_factory=lambda: Table(THROTTLED_NAMES))
    consumers: Table = field(default_factory=lambda: Table(CONSUMER_NAMES))
    producers: Table = field(default_factory=lambda: Table(PRODUCER_NAMES))
    topics_by_namespace: dict[str, int] = field(default_factory=dict)
    sums_by_namespace: dict[str, list[float]] = field(default_factory=dict)
    system_bytes: dict[str, int] = field(default_factory=lambda: {"in": 0, "out": 0})
    """Bytes published to system topics, and those that brokers have read themselves."""
    bytes_out: int = 0
    _places: dict[str, str] = field(default_factory=dict)  # labels by namespace

    def add(self, name: TopicName, stats: TopicStats, *, copies_count: int) -> None:
        """Take in one topic, of which so many copies are stored."""
        namespace = str(name.namespace_name)
        self.topics_by_namespace[namespace] = self.topics_by_namespace.get(namespace, 0) + 1
        values = topic_values(stats, copies_count)
        self.bytes_out += stats.bytes_out_count
        if name.is_system:
            self.system_bytes["in"] += stats.bytes_in_count
            self.system_bytes["out"] += stats.internal_bytes_out
        if not self.selection.by_topic:
            self._add_to_namespace(namespace, values, stats)
            return
        labels = self._labels_of(name, namespace)
        self.topics.add(labels, values)
        written = None if stats.written is NOTHING_WRITTEN else written_values(stats.written)
        self.written.add_row(self.topics.labels[-1], written)
        if (compactions := compaction_values(stats.compaction)) is not None:
            self.compactions.add(labels, compactions)
        for subscription_name, subscription in stats.subscriptions.items():
            own = f'{labels},subscription="{escaped(subscription_name)}"'
            self.subscriptions.add(own, subscription_values(subscription))
            for reason, events in throttled_values(subscription).items():
                self.throttled.add(f'{own},reason="{reason}"', events)
            if self.selection.consumers:
                for text, figures in _consumers(subscription).items():
                    self.consumers.add(f"{own},{text}", figures)
        for producer in stats.producers if self.selection.producers else ():
            ids = {"producer_name": producer.producer_name, "producer_id": producer.producer_id}
            text = labels_text({key: str(value) for key, value in ids.items()})
            self.producers.add(f"{labels},{text}", producer_values(producer))

    def total(self, name: str) -> float:
        """The sum of one of `TOPIC_SUMS` over all topics."""
        if self.selection.by_topic:
            return sum(self.topics.column(name))
        index = TOPIC_SUMS.index(name)
        return sum(each[index] for each in self.sums_by_namespace.values())

    def _labels_of(self, name: TopicName, namespace: str) -> str:
        place = self._places.get(namespace)
        if place is None:
            place = labels_text({"cluster": self.cluster, "namespace": namespace})
            self._places[namespace] = place
        if not self.selection.splits_partitions:
            return f'{place},topic="{escaped(str(name))}"'
        index = name.partition_index
        return f'{place},topic="{escaped(str(name.base))}",partition="{index}"'

    def _add_to_namespace(
        self, namespace: str, values: tuple[float, ...], stats: TopicStats
    ) -> None:
        subscriptions = [subscription_values(each) for each in stats.subscriptions.values()]
        sent = [sum(each[i] for each in subscriptions) for i in range(len(SUBSCRIPTION_SUMS))]
        added = [*values[: len(TOPIC_SUMS)], *sent, *written_values(stats.written)]
        before = self.sums_by_namespace.get(namespace) or [0.0] * len(added)
        self.sums_by_namespace[namespace] = [a + b for a, b in zip(before, added, strict=True)]

    def pieces(self) -> Iterator[str]:
        """The text, a chunk at a time."""
        counts = Table(("pulsar_topics_count",))
        for namespace, count in self.topics_by_namespace.items():
            counts.add(labels_text({"cluster": self.cluster, "namespace": namespace}), (count,))
        yield from counts.pieces()
        yield from self._namespace_pieces()
        of_topics = (
            self.topics,
            self.written,
            self.compactions,
            self.subscriptions,
            self.throttled,
        )
        for table in (*of_topics, self.consumers, self.producers):
            yield from table.pieces()

    def _namespace_pieces(self) -> Iterator[str]:
        """Pulsar has the backlog of a namespace with a label more, for replication."""
        sums = Table((*TOPIC_SUMS, *SUBSCRIPTION_SUMS, *WRITTEN_NAMES))
        backlogs = Table((_BACKLOG,))
        for namespace, values in self.sums_by_namespace.items():
            labels = labels_text({"cluster": self.cluster, "namespace": namespace})
            sums.add(labels, tuple(values))
            backlog = values[TOPIC_SUMS.index(_BACKLOG)]
            backlogs.add(f'{labels},remote_cluster="local"', (backlog,))
        yield from sums.pieces(without=(_BACKLOG,))
        yield from backlogs.pieces()


def _consumers(subscription: SubscriptionStats) -> dict[str, tuple[float, ...]]:
    """The values of a subscription's consumers by their labels."""
    found: dict[str, tuple[float, ...]] = {}
    for consumer in subscription.consumers:
        ids = {"consumer_name": consumer.consumer_name, "consumer_id": str(consumer.consumer_id)}
        text, values = labels_text(ids), consumer_values(consumer)
        found[text] = joined_values(found[text], values) if text in found else values
    return found
