"""Readers without await."""

from __future__ import annotations

import threading

import pytest

from pulsar_py import blocking
from tests.unit.blocking.test_prefetch import fill


def test_it_reads_from_any_position_and_shows_its_progress(
    client: blocking.Client, topic: str
) -> None:
    fill(client, topic, 100)
    with client.create_reader(topic, blocking.MessageId.earliest) as reader:
        assert reader.topics() == [reader.topic()]
        assert reader.is_connected()
        assert reader.subscription_name().startswith("reader-")
        assert not reader.has_reached_end_of_topic
        got = []
        while reader.has_message_available():
            got.append(int(reader.read_next(30_000).data()))
        assert got == list(range(100))
        assert reader.read_nowait() is None
        assert reader.statistics().total_messages_received == 100
        assert reader.statistics().total_acks_sent > 0
        reader.seek(blocking.MessageId.earliest)
        assert int(next(reader).data()) == 0
        assert len(reader.get_last_message_ids()) == 1
        assert repr(reader).startswith("blocking.Reader(")
    assert reader.is_closed
    with pytest.raises(blocking.AlreadyClosedError):
        reader.read_next()
    assert list(reader) == []


def test_its_listener_is_called_in_a_thread_and_may_block(
    client: blocking.Client, topic: str
) -> None:
    got = []
    done = threading.Event()

    def listen(reader: blocking.Reader, message: blocking.Message) -> None:
        got.append((threading.current_thread().name, reader.has_message_available()))
        if len(got) == 3:
            done.set()

    reader = client.create_reader(topic, blocking.MessageId.earliest, reader_listener=listen)
    fill(client, topic, 3)
    assert done.wait(30)
    assert got[0][0].startswith("pulsar_py listener of reader of ")
    assert got[-1][1] is False
    with pytest.raises(blocking.OperationNotSupportedError):
        reader.read_next()
    reader.close()
