"""`EntryFilter`: the base class of users' filters, which choose what a subscription is sent.

    class OnlyEurope(EntryFilter):
        def filter_entry(self, entry, context):
            region = {pair.key: pair.value for pair in entry.metadata.properties}.get("region")
            return FilterResult.ACCEPT if region == "eu" else FilterResult.REJECT

An entry is what a producer sent: one message, or a batch, whose messages have one result. Markers
of the broker are not shown. A class has no arguments, and one instance serves all topics of a
broker; it is called in the broker's loop, so it must not block.

Source: EntryFilter, FilterContext in Pulsar's broker (PIP-105).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from functools import cached_property

from msgspec import Struct

from pulsar_py.proto.PulsarApi_pb2 import BrokerEntryMetadata, MessageMetadata
from pulsar_py.wire.payload import EntryParts, split_entry


class FilterResult(Enum):
    """What becomes of an entry, for one subscription."""

    ACCEPT = auto()  # the next filter decides; it is sent if none objects
    REJECT = auto()  # acknowledged, and never sent
    RESCHEDULE = auto()  # shown again after `dispatcherEntryFilterRescheduledMessageDelay`


class FilterContext(Struct, frozen=True, kw_only=True):
    """The topic and the subscription that an entry is filtered for."""

    topic: str
    """The topic's full name, that of a partition included."""
    subscription: str
    subscription_properties: Mapping[str, str]


class FilteredEntry:
    """A stored entry; it is taken apart when a filter asks for its parts, once for all filters."""

    def __init__(self, ledger_id: int, entry_id: int, data: bytes) -> None:
        self.ledger_id = ledger_id
        self.entry_id = entry_id
        self.data = data
        """Headers, metadata and payload as they are stored."""

    @cached_property
    def _parts(self) -> EntryParts:
        return split_entry(self.data)

    @property
    def metadata(self) -> MessageMetadata:
        """What the producer said: properties, key, times, compression, number of messages."""
        return self._parts.metadata

    @property
    def broker_entry_metadata(self) -> BrokerEntryMetadata | None:
        """Index and time that the broker stored with it; None without."""
        return self._parts.broker_entry_metadata

    @property
    def payload(self) -> bytes:
        """The payload as it is stored: perhaps compressed, encrypted, or a batch."""
        return self._parts.payload


class EntryFilter:
    """The base class of users' filters."""

    def filter_entry(self, entry: FilteredEntry, context: FilterContext) -> FilterResult:
        """Decide about one entry. An error counts as ACCEPT: nothing is lost by a faulty filter."""
        raise NotImplementedError

    def close(self) -> None:
        """Called when the broker stops."""
