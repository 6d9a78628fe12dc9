from __future__ import annotations

from collections.abc import Callable

import pytest

from pulsar_py.common.errors import NotAllowedError, ServiceMetadataError
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.proto.PulsarApi_pb2 import BrokerEntryMetadata
from pulsar_py.server.limits.message_checks import (
    check_message,
    is_chunk_part,
    looks_at_messages,
    published_millis,
)
from pulsar_py.server.policies.topic_settings import TopicSettings
from pulsar_py.wire.payload import add_broker_entry_metadata
from tests.unit.server.topics.rig import entry

UNREADABLE = b"\x00\x00\x00\x05xx"


def test_nothing_is_looked_at_by_default() -> None:
    assert not looks_at_messages(TopicSettings())
    check_message(UNREADABLE, TopicSettings())


def test_encryption_required() -> None:
    settings = TopicSettings(is_encryption_required=True)
    check_message(entry(encryption_keys=["k"]), settings)
    for data in (entry(), UNREADABLE):
        with pytest.raises(ServiceMetadataError):
            check_message(data, settings)


def test_metadata_and_framing_count_for_the_size() -> None:
    settings = TopicSettings(max_message_bytes=100)
    check_message(entry(payload=b"x" * 60), settings)
    with pytest.raises(NotAllowedError):
        check_message(entry(payload=b"x" * 90), settings)


def test_a_delay_is_counted_from_the_publish_time() -> None:
    settings = TopicSettings(max_delay_millis=5000)
    check_message(entry(publish_time=1000, deliver_at_time=6000), settings)
    check_message(entry(publish_time=1000), settings)
    check_message(UNREADABLE, settings)
    with pytest.raises(NotAllowedError):
        check_message(entry(publish_time=1000, deliver_at_time=6001), settings)
    check_message(entry(publish_time=1000, deliver_at_time=6001), settings, has_delays=False)
    assert not looks_at_messages(settings, has_delays=False)


@pytest.mark.parametrize(
    ("make", "is_part"),
    [
        (lambda: entry(chunk_id=0, num_chunks_from_msg=3), True),
        (lambda: entry(chunk_id=2, num_chunks_from_msg=3), False),
        (entry, False),
        (lambda: UNREADABLE, False),
    ],
)
def test_the_last_chunk_is_no_part(make: Callable[[], bytes], *, is_part: bool) -> None:
    assert is_chunk_part(make()) is is_part


def test_the_brokers_time_goes_before_the_clients() -> None:
    data = entry(publish_time=5)
    assert published_millis(Entry(1, 0, data)) == 5
    stamped = add_broker_entry_metadata(data, BrokerEntryMetadata(broker_timestamp=9))
    assert published_millis(Entry(1, 0, stamped)) == 9
    assert published_millis(Entry(1, 0, UNREADABLE)) == 0
