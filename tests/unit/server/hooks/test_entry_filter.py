"""entry_filter: what a user's filter is shown."""

from __future__ import annotations

import pytest

from pulsar_py.proto.PulsarApi_pb2 import BrokerEntryMetadata
from pulsar_py.server.hooks.entry_filter import EntryFilter, FilterContext, FilteredEntry
from pulsar_py.wire.payload import add_broker_entry_metadata
from tests.dispatch_parts import message

CONTEXT = FilterContext(topic="t", subscription="s", subscription_properties={})


def test_an_entry_is_shown_in_its_parts() -> None:
    data = message(b"body", partition_key="k")
    entry = FilteredEntry(3, 4, add_broker_entry_metadata(data, BrokerEntryMetadata(index=7)))
    assert (entry.ledger_id, entry.entry_id) == (3, 4)
    assert entry.metadata.partition_key == "k"
    assert entry.payload == b"body"
    assert entry.broker_entry_metadata is not None
    assert entry.broker_entry_metadata.index == 7
    assert FilteredEntry(3, 4, data).broker_entry_metadata is None


def test_a_filter_has_to_decide() -> None:
    with pytest.raises(NotImplementedError):
        EntryFilter().filter_entry(FilteredEntry(1, 1, b""), CONTEXT)
    EntryFilter().close()
