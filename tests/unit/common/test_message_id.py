"""Message ids."""

from __future__ import annotations

import pytest

from pulsar_py.common.message_id import (
    EARLIEST_MESSAGE_ID,
    LATEST_MESSAGE_ID,
    MessageId,
    position_of,
    to_signed,
    to_unsigned,
)
from pulsar_py.common.position import EARLIEST, LATEST, Position
from pulsar_py.proto.PulsarApi_pb2 import MessageIdData


def test_minus_one_is_unsigned_on_the_wire() -> None:
    assert to_unsigned(-1) == 2**64 - 1
    assert to_signed(2**64 - 1) == -1
    assert to_signed(to_unsigned(2**63 - 1)) == 2**63 - 1
    assert position_of(MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1)) == EARLIEST


def test_ids_are_ordered_by_entry_and_then_by_batch_index() -> None:
    whole = MessageId(1, 5)
    first = MessageId(1, 5, batch_index=0, batch_size=2)
    second = MessageId(1, 5, batch_index=1, batch_size=2)
    later = MessageId(2, 0)

    assert sorted([later, LATEST_MESSAGE_ID, second, whole, EARLIEST_MESSAGE_ID, first]) == [
        EARLIEST_MESSAGE_ID,
        whole,
        first,
        second,
        later,
        LATEST_MESSAGE_ID,
    ]


@pytest.mark.parametrize(
    "message_id",
    [
        MessageId(7, 0),
        MessageId(7, 0, partition_index=3),
        MessageId(7, 2, batch_index=1, batch_size=3),
        MessageId(7, 1, first_chunk=MessageId(7, 0)),
        EARLIEST_MESSAGE_ID,
        LATEST_MESSAGE_ID,
    ],
    ids=str,
)
def test_the_serialized_form_reads_back(message_id: MessageId) -> None:
    again = MessageId.parse(message_id.serialize())

    assert again == message_id
    assert hash(again) == hash(message_id)
    assert again.batch_size == message_id.batch_size


def test_ids_name_their_entry() -> None:
    assert MessageId(7, 2, batch_index=1, batch_size=3).position == Position(7, 2)
    assert LATEST_MESSAGE_ID.position == LATEST


def test_text_is_that_of_pulsar() -> None:
    assert str(MessageId(7, 2)) == "7:2:-1"
    assert str(MessageId(7, 2, partition_index=1, batch_index=4)) == "7:2:1:4"
    assert repr(MessageId(7, 2)) == "MessageId(7:2:-1)"


@pytest.mark.parametrize("data", [b"\xff", b"\x08\x80"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a serialized message id"):
        MessageId.parse(data)


def test_an_id_is_not_equal_to_something_else() -> None:
    assert MessageId(1, 2) != (1, 2)
    assert MessageId(1, 2) != MessageId(1, 2, partition_index=1)


def test_the_ends_and_the_reader_have_the_official_clients_names() -> None:
    assert MessageId.earliest == EARLIEST_MESSAGE_ID
    assert MessageId.latest == LATEST_MESSAGE_ID
    assert MessageId.deserialize(MessageId(3, 4).serialize()) == MessageId(3, 4)
