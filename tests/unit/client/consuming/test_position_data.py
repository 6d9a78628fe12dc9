from __future__ import annotations

from pulsar_py.client.consuming.position_data import seek_data, start_data
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, MessageId


def test_the_start_is_the_entry_and_of_a_chunked_message_the_first_chunk() -> None:
    assert start_data(EARLIEST_MESSAGE_ID).ledgerId == 2**64 - 1
    assert start_data(MessageId(1, 9, first_chunk=MessageId(1, 5))).entryId == 5
    assert start_data(MessageId(1, 2, batch_index=3)).batch_index == 3


def test_seek_into_a_batch_and_to_the_first_chunk() -> None:
    found = seek_data(MessageId(1, 2, batch_index=2, batch_size=4))
    assert list(found.ack_set) == [0b1100]
    assert not seek_data(MessageId(1, 2, batch_index=0, batch_size=4)).ack_set
    assert seek_data(MessageId(1, 9, first_chunk=MessageId(1, 5))).entryId == 5
