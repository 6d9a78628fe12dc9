from __future__ import annotations

from pulsar_py.server.publishing.entry_metadata import EntryStamper
from pulsar_py.wire.payload import parse_broker_entry_metadata, strip_broker_entry_metadata

PACKAGE = "org.apache.pulsar.common.intercept."
BOTH = (
    PACKAGE + "AppendIndexMetadataInterceptor",
    PACKAGE + "AppendBrokerTimestampMetadataInterceptor",
)


def test_nothing_is_needed_without_interceptors() -> None:
    assert not EntryStamper(()).is_needed
    assert not EntryStamper(("org.example.Unknown",)).is_needed


def test_the_index_is_that_of_the_last_message() -> None:
    stamper = EntryStamper(BOTH)
    indexes = []
    for count in (1, 3, 1, 0, -1):
        stamp = parse_broker_entry_metadata(stamper.stamp(b"entry", count, 99))
        assert stamp is not None
        assert stamp.broker_timestamp == 99
        indexes.append(stamp.index)
    assert indexes == [0, 3, 4, 5, 6]


def test_the_entry_itself_stays_as_it_is() -> None:
    stamped = EntryStamper(BOTH).stamp(b"entry", 1, 5)
    assert strip_broker_entry_metadata(stamped) == b"entry"


def test_one_interceptor_adds_one_field() -> None:
    stamp = parse_broker_entry_metadata(EntryStamper(BOTH[1:]).stamp(b"entry", 1, 5))
    assert stamp is not None
    assert not stamp.HasField("index")
