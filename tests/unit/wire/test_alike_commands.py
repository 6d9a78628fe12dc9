"""What is read without protobuf is what protobuf reads, and everything else is left to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandMessage,
    CommandSendReceipt,
    MessageIdData,
)
from pulsar_py.wire.alike_commands import NOTHING, AlikeCommands
from pulsar_py.wire.receipt_runs import Receipt

IDS = st.integers(0, 2**63 - 1) | st.integers(0, 300)


def message(
    consumer_id: int, ledger_id: int, entry_id: int, ack_set: tuple[int, ...] = (), **fields: int
) -> tuple[bytes, CommandMessage]:
    message_id = MessageIdData(ledgerId=ledger_id, entryId=entry_id, partition=3)
    command = CommandMessage(consumer_id=consumer_id, message_id=message_id, **fields)
    command.ack_set.extend(ack_set)
    whole = BaseCommand(type=BaseCommand.MESSAGE, message=command)
    return whole.SerializeToString(), command


def receipt(values: Receipt, **message_id: int) -> bytes:
    command = CommandSendReceipt(
        producer_id=values.producer_id,
        sequence_id=values.sequence_id,
        message_id=MessageIdData(ledgerId=values.ledger_id, entryId=values.entry_id, **message_id),
    )
    if values.highest_sequence_id:
        command.highest_sequence_id = values.highest_sequence_id
    whole = BaseCommand(type=BaseCommand.SEND_RECEIPT, send_receipt=command)
    return whole.SerializeToString()


@given(IDS, IDS, IDS, IDS, st.integers(0, 5), st.lists(st.integers(0, 2**40), max_size=3))
def test_a_message_like_the_last_one_has_its_own_entry_id(  # noqa: PLR0917 - values of hypothesis
    consumer_id: int, ledger_id: int, entry_id: int, other_id: int, count: int, ack_set: list[int]
) -> None:
    fields = {"ack_set": tuple(ack_set), "redelivery_count": count}
    data, command = message(consumer_id, ledger_id, entry_id, **fields)
    other, _ = message(consumer_id, ledger_id, other_id, **fields)
    alike = AlikeCommands()
    alike.learn_message(data, command)
    assert alike.find(data) == (command, (ledger_id, entry_id))
    if len(other) == len(data):
        assert alike.find(other) == (command, (ledger_id, other_id))
    else:
        assert alike.find(other) is NOTHING


@given(IDS, IDS, IDS, IDS, IDS, IDS, st.integers(0, 2))
def test_a_receipt_like_the_last_one_has_its_own_ids(  # noqa: PLR0917 - as above
    producer_id: int,
    sequence_id: int,
    ledger_id: int,
    entry_id: int,
    other_sequence_id: int,
    other_entry_id: int,
    highest: int,
) -> None:
    last = Receipt(producer_id, sequence_id, ledger_id, entry_id, highest)
    other = Receipt(producer_id, other_sequence_id, ledger_id, other_entry_id, highest)
    data = receipt(last)
    alike = AlikeCommands()
    alike.learn_receipt(data, last)
    assert alike.find(data) == (last, None)
    found = alike.find(receipt(other))
    if sizes(last) == sizes(other):
        assert found == (other, None)
    else:
        assert found is NOTHING


def sizes(values: Receipt) -> list[int]:
    """Of its two ids, in bytes."""
    return [max(each.bit_length() - 1, 0) // 7 for each in values[1:4:2]]


def test_what_differs_in_anything_else_is_left_to_the_parser() -> None:
    alike = AlikeCommands()
    assert alike.find(b"") is NOTHING
    data, command = message(1, 7, 200)
    alike.learn_message(data, command)
    alike.learn_receipt(receipt(Receipt(1, 200, 7, 200)), Receipt(1, 200, 7, 200))
    for other in (
        message(2, 7, 200)[0],
        message(1, 8, 200)[0],
        message(1, 7, 20)[0],
        message(1, 7, 20000)[0],
        message(1, 7, 200, redelivery_count=1)[0],
        message(1, 7, 200, ack_set=(5,))[0],
        data[:-1] + b"\x02",
        receipt(Receipt(2, 200, 7, 200)),
        receipt(Receipt(1, 200, 8, 200)),
        receipt(Receipt(1, 200, 7, 200, 300)),
        receipt(Receipt(1, 20, 7, 20000)),
        receipt(Receipt(1, 20000, 7, 20)),
    ):
        assert alike.find(other) is NOTHING


def test_bytes_that_are_no_number_where_an_id_should_be_are_left_to_the_parser() -> None:
    data, command = message(1, 7, 200)
    at = data.index(b"\xc8\x01")
    alike = AlikeCommands()
    alike.learn_message(data, command)
    for wrong in (b"\x48\x01", b"\xc8\x81", b"\x48\x81"):
        assert alike.find(data[:at] + wrong + data[at + 2 :]) is NOTHING


def test_other_layouts_are_not_learned() -> None:
    alike = AlikeCommands()
    data, command = message(1, 7, 200, ack_set=tuple(range(2**60, 2**60 + 20)))
    assert len(data) > 128  # whose sizes take two bytes
    alike.learn_message(data, command)
    assert alike.find(data) is NOTHING
    values = Receipt(1, 200, 7, 200)
    alike.learn_receipt(receipt(values, partition=2), values)
    assert alike.find(receipt(values, partition=2)) is NOTHING


@pytest.mark.parametrize("ids", [(2**64 - 1, 5), (7, 2**64 - 1)])
def test_ids_that_are_negative_are_left_to_the_parser(ids: tuple[int, int]) -> None:
    alike = AlikeCommands()
    data, command = message(1, *ids)
    alike.learn_message(data, command)
    assert alike.find(data) is NOTHING
