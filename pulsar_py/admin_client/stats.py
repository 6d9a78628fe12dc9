"""Statistics of topics as typed values, parsed from the REST API's JSON (pure).

Only what our tools use has a field. Brokers send more, and older ones less: a missing number is 0.
A backlog counts entries and a rate counts messages; `entry_rate_out` is in the unit of the backlog.

Source: GET {topic}/stats and {topic}/internalStats; TopicStats and PersistentTopicInternalStats in
Pulsar's admin API.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pulsar_py.common.position import Position

Json = Mapping[str, Any]  # Any: JSON of many shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionStats:
    """Statistics of one subscription of a topic, or of one partition."""

    name: str
    type: str
    """`Exclusive`, `Shared` and so on; the text `None` without consumers."""
    is_durable: bool
    backlog_entries: int
    backlog_bytes: int
    """-1 unless the request asked for it (`subscriptionBacklogSize`)."""
    unacked_messages: int
    delayed_messages: int
    message_rate_out: float
    """Messages sent to consumers per second, redeliveries included."""
    message_rate_redelivered: float
    messages_per_entry: float
    """Average over the entries that consumers got lately, at least 1."""
    consumers_count: int
    is_blocked: bool
    """Whether it gets no messages because too many are unacknowledged."""
    last_acked_millis: int
    oldest_publish_millis: int
    """Publish time of the oldest unacknowledged message; 0 if the broker does not send it."""

    @classmethod
    def of(cls, name: str, json: Json) -> SubscriptionStats:
        """Parse one value of `subscriptions`."""
        consumers = json.get("consumers") or []
        averages = [each.get("avgMessagesPerEntry", 0) for each in consumers]
        known = [each for each in averages if each > 0]
        return cls(
            name=name,
            type=str(json.get("type", "None")),
            is_durable=bool(json.get("isDurable", json.get("durable", True))),
            backlog_entries=int(json.get("msgBacklog", 0)),
            backlog_bytes=int(json.get("backlogSize", -1)),
            unacked_messages=int(json.get("unackedMessages", 0)),
            delayed_messages=int(json.get("msgDelayed", 0)),
            message_rate_out=float(json.get("msgRateOut", 0)),
            message_rate_redelivered=float(json.get("msgRateRedeliver", 0)),
            messages_per_entry=max(1.0, sum(known) / len(known)) if known else 1.0,
            consumers_count=len(consumers),
            is_blocked=bool(json.get("blockedSubscriptionOnUnackedMsgs", False)),
            last_acked_millis=int(json.get("lastAckedTimestamp", 0)),
            oldest_publish_millis=int(json.get("earliestMsgPublishTimeInBacklog", 0)),
        )

    @property
    def entry_rate_out(self) -> float:
        """Entries that are sent for the first time per second, and so leave the backlog."""
        first_sent = max(0.0, self.message_rate_out - self.message_rate_redelivered)
        return first_sent / self.messages_per_entry


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStats:
    """Statistics of a topic, or of one partition."""

    message_rate_in: float
    byte_rate_in: float
    average_message_bytes: float
    messages_in_count: int
    bytes_in_count: int
    storage_bytes: int
    backlog_bytes: int
    oldest_backlog_age_seconds: int
    """Of the slowest subscription; -1 if the broker does not send it."""
    oldest_backlog_subscription: str | None
    deduplication: str | None
    """`Enabled` or `Disabled`; None if the broker does not send it."""
    subscriptions: Mapping[str, SubscriptionStats]

    @classmethod
    def of(cls, json: Json) -> TopicStats:
        """Parse the answer to `{topic}/stats`."""
        subscriptions = json.get("subscriptions") or {}
        return cls(
            message_rate_in=float(json.get("msgRateIn", 0)),
            byte_rate_in=float(json.get("msgThroughputIn", 0)),
            average_message_bytes=float(json.get("averageMsgSize", 0)),
            messages_in_count=int(json.get("msgInCounter", 0)),
            bytes_in_count=int(json.get("bytesInCounter", 0)),
            storage_bytes=int(json.get("storageSize", 0)),
            backlog_bytes=int(json.get("backlogSize", 0)),
            oldest_backlog_age_seconds=int(json.get("oldestBacklogMessageAgeSeconds", -1)),
            oldest_backlog_subscription=json.get("oldestBacklogMessageSubscriptionName") or None,
            deduplication=json.get("deduplicationStatus"),
            subscriptions={
                name: SubscriptionStats.of(name, each) for name, each in subscriptions.items()
            },
        )


@dataclass(frozen=True, slots=True)
class LedgerInfo:
    """One ledger of a topic; for the open one, its entries and bytes so far."""

    ledger_id: int
    entries_count: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalStats:
    """The ledgers and cursors of a topic, or of one partition."""

    ledgers: tuple[LedgerInfo, ...]
    last_confirmed: Position
    entries_count: int
    size_bytes: int
    mark_delete_positions: Mapping[str, Position]
    """Mark-delete position of each subscription, by its name."""

    @classmethod
    def of(cls, json: Json) -> InternalStats:
        """Parse the answer to `{topic}/internalStats`.

        Brokers list the open ledger, the last one, with zeros, and its figures apart.
        """
        given = json.get("ledgers") or []
        ledgers = [
            LedgerInfo(int(each["ledgerId"]), int(each["entries"]), int(each["size"]))
            for each in given
        ]
        if ledgers and not ledgers[-1].entries_count:
            ledgers[-1] = LedgerInfo(
                ledgers[-1].ledger_id,
                int(json.get("currentLedgerEntries", 0)),
                int(json.get("currentLedgerSize", 0)),
            )
        cursors: Json = json.get("cursors") or {}
        return cls(
            ledgers=tuple(ledgers),
            last_confirmed=Position.parse(json.get("lastConfirmedEntry", "-1:-1")),
            entries_count=int(json.get("numberOfEntries", 0)),
            size_bytes=int(json.get("totalSize", 0)),
            mark_delete_positions={
                name: Position.parse(each["markDeletePosition"])
                for name, each in cursors.items()
                if "markDeletePosition" in each
            },
        )

    def left_from(self, position: Position) -> LedgerInfo:
        """Entries and bytes from the next position to read up to the end, as one `LedgerInfo`.

        Bytes are estimated by the average entry of each ledger. The ledger id is that of the first
        ledger with such entries, -1 if there are none.
        """
        entries = 0
        size = 0.0
        first = -1
        for ledger in self.ledgers:
            if ledger.ledger_id < position.ledger_id or not ledger.entries_count:
                continue
            skipped = position.entry_id if ledger.ledger_id == position.ledger_id else 0
            left = ledger.entries_count - max(0, skipped)
            if left <= 0:
                continue
            first = ledger.ledger_id if first < 0 else first
            entries += left
            size += left * ledger.size_bytes / ledger.entries_count
        return LedgerInfo(first, entries, round(size))
