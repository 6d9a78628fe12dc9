"""Declares the types of the console's answers, for its OpenAPI document; handlers do not use them.

They are exact, as those of the REST API.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import UNSET, UnsetType, field

from pulsar_py.admin.api.statistics_answers import (
    ConsumerStatsAnswer,
    ExactAnswer,
    PublisherStats,
)

Number: TypeAlias = int | float


class CallerAnswer(ExactAnswer, frozen=True):
    """Who is signed in, and where."""

    authentication: bool
    authorization: bool
    cluster: str
    version: str
    actions: list[str]
    role: str | None = None


class RightsAnswer(ExactAnswer, frozen=True):
    """What the caller may do."""

    actions: list[str]


class TenantLine(ExactAnswer, frozen=True):
    """A tenant, and how many namespaces it has."""

    name: str
    namespaces: int


class NamespaceLine(ExactAnswer, frozen=True):
    """A namespace, and how many topics it has."""

    name: str
    topics: int


class TopicLine(ExactAnswer, frozen=True):
    """A topic; figures are those of its loaded partitions."""

    name: str
    partitions: int
    loaded: int
    message_in_rate: Number = 0
    message_out_rate: Number = 0
    backlog: int = 0
    storage_bytes: int = 0
    producers: int = 0
    consumers: int = 0
    subscriptions: int = 0
    standing: list[str] = field(default_factory=list)


class TenantPage(ExactAnswer, frozen=True):
    """A page of tenants."""

    items: list[TenantLine]
    more: bool
    total: int


class NamespacePage(ExactAnswer, frozen=True):
    """A page of namespaces."""

    items: list[NamespaceLine]
    more: bool
    total: int


class TopicPage(ExactAnswer, frozen=True):
    """A page of topics."""

    items: list[TopicLine]
    more: bool
    total: int


class Rates(ExactAnswer, frozen=True):
    """What goes in and out, a second."""

    message_in_rate: Number
    bytes_in_rate: Number
    message_out_rate: Number
    bytes_out_rate: Number


class SampleAnswer(Rates, frozen=True):
    """The broker at one moment."""

    millis: int
    topics: int
    subscriptions: int
    producers: int
    consumers: int
    connections: int
    backlog: int
    storage_bytes: int


class BusyTopic(Rates, frozen=True):
    """One of the busiest topics."""

    topic: str
    backlog: int


class LiveAnswer(ExactAnswer, frozen=True):
    """Samples of the last minutes, and the busiest topics."""

    samples: list[SampleAnswer]
    busiest: list[BusyTopic]


class SizeLine(ExactAnswer, frozen=True):
    """How many bytes something has."""

    name: str
    bytes: int


class StorageAnswer(ExactAnswer, frozen=True):
    """What is stored; `store` is what the ledger store says about itself."""

    store: dict[str, int | float | bool]
    total_bytes: int
    namespaces: list[SizeLine]
    topics: list[SizeLine]


class PolicyLine(ExactAnswer, frozen=True):
    """A policy: its value, where that comes from, and what each level has."""

    word: str
    method: str
    removable: bool
    needs: str
    origin: str
    value: Any = None
    topic: Any = None
    namespace: Any = None
    broker: Any = None
    is_in_query: bool = False
    kind: str | None = None


class PreviewLine(ExactAnswer, frozen=True):
    """The effect of an action on one partition, in entries."""

    topic: str
    backlog: int
    backlog_after: int
    acknowledges: int
    redelivers: int
    next: str
    disconnects: int


class PublishedAnswer(ExactAnswer, frozen=True):
    """The id of a message that was published."""

    message_id: str


class SentBackAnswer(ExactAnswer, frozen=True):
    """How many dead letters went where, and why no more did."""

    sent: int
    to_topics: dict[str, int]
    more: bool
    skipped: str | None = None


class HolesAnswer(ExactAnswer, frozen=True):
    """A picture of what is acknowledged: entries and acknowledged ones of each cell."""

    first: str
    last: str
    entries: int
    acknowledged: int
    cells: list[tuple[int, int]]
    starts: list[str]
    mark_delete: str
    read: str
    end: str
    holes: int
    partly: int
    backlog: int


class SettingLine(ExactAnswer, frozen=True):
    """A setting, its value and origin, and what it does."""

    name: str
    category: str
    doc: str
    value: str
    default: str
    origin: str
    is_dynamic: bool


class Totals(Rates, frozen=True):
    """Sums over the partitions of a topic."""

    messages_in: int
    bytes_in: int
    messages_out: int
    bytes_out: int
    storage_bytes: int
    backlog_bytes: int
    producers: int


class PartitionLine(Totals, frozen=True):
    """One partition."""

    name: str


class ProducerLine(PublisherStats, frozen=True, kw_only=True):
    """A producer, and the topic or partition that it is on."""

    topic: str


class SubscriptionLine(ExactAnswer, frozen=True):
    """Sums over a subscription's partitions."""

    name: str
    is_durable: bool
    backlog: int
    backlog_bytes: int
    delayed: int
    unacked: int
    holes: int
    message_out_rate: Number
    ack_rate: Number
    redeliver_rate: Number
    consumers: int
    last_consumed_millis: int
    last_acked_millis: int
    standing: list[str]
    properties: dict[str, str]
    type: str | None = None


class SubscriptionPage(ExactAnswer, frozen=True):
    """A page of subscriptions."""

    items: list[SubscriptionLine]
    more: bool
    total: int


class LedgerFigures(ExactAnswer, frozen=True):
    """What is stored of a topic."""

    entries: int
    ledgers: int
    first_position: str
    last_position: str
    is_terminated: bool


class TopicAnswer(ExactAnswer, frozen=True):
    """A topic with a page of its subscriptions."""

    name: str
    partitions: int
    totals: Totals
    partition_lines: list[PartitionLine]
    producers: list[ProducerLine]
    subscriptions: SubscriptionPage
    ledger: LedgerFigures | None = None


class ReasonLine(ExactAnswer, frozen=True):
    """Why a subscription does not move."""

    code: str
    message: str
    fields: dict[str, Any]


class CursorFigures(ExactAnswer, frozen=True):
    """Where a subscription stands."""

    mark_delete_position: str
    read_position: str
    last_position: str


class SubscriptionPart(ExactAnswer, frozen=True):
    """A subscription on one partition."""

    topic: str
    backlog: int
    subscription: str | UnsetType = UNSET
    reasons: list[ReasonLine] | UnsetType = UNSET
    cursor: CursorFigures | UnsetType = UNSET


class ConsumerLine(ConsumerStatsAnswer, frozen=True, kw_only=True):
    """A consumer; `key` is its place in the list."""

    key: str
    topic: str


class ConsumerPage(ExactAnswer, frozen=True):
    """A page of consumers."""

    items: list[ConsumerLine]
    more: bool
    total: int


class SubscriptionAnswer(SubscriptionLine, frozen=True, kw_only=True):
    """A subscription: its figures, why it stands still, and a page of its consumers."""

    topic: str
    parts: list[SubscriptionPart]
    consumer_lines: ConsumerPage
