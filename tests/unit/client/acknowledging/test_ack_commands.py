from __future__ import annotations

from pulsar_py.client.acknowledging import ack_commands
from pulsar_py.client.acknowledging.ack_grouping import AckGroup
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandAck
from pulsar_py.wire.commands import read_command


def command_of(frame: bytes) -> BaseCommand:
    return read_command(frame[8:])


def test_acks_of_a_flush() -> None:
    pending = AckGroup(((1, 5), 0b100), {(1, 7): 0, (2, 0): 1 << 64})
    frames = ack_commands.acks(3, pending, iter([10, 11]))
    cumulative, individual = (command_of(frame).ack for frame in frames)
    assert cumulative.ack_type == CommandAck.Cumulative
    assert list(cumulative.message_id[0].ack_set) == [0b100]
    assert (cumulative.request_id, individual.request_id) == (10, 11)
    ids = [(each.ledgerId, each.entryId, list(each.ack_set)) for each in individual.message_id]
    assert ids == [(1, 7, []), (2, 0, [0, 1])]
    without = ack_commands.acks(3, AckGroup(None, {(1, 7): 0}), None)
    assert not command_of(without[0]).ack.HasField("request_id")
    before_first = ack_commands.acks(3, AckGroup(((1, -1), 0), {}), None)
    assert command_of(before_first[0]).ack.message_id[0].entryId == 2**64 - 1


def test_an_unusable_entry_is_acknowledged_with_the_reason() -> None:
    found = command_of(ack_commands.validation_ack(3, (1, 2), CommandAck.ChecksumMismatch)).ack
    assert found.validation_error == CommandAck.ChecksumMismatch
    assert found.message_id[0].entryId == 2


def test_redeliveries_are_cut_into_commands() -> None:
    frames = ack_commands.redeliver(3, [(1, each) for each in range(2500)])
    counts = [
        len(command_of(frame).redeliverUnacknowledgedMessages.message_ids) for frame in frames
    ]
    assert counts == [1000, 1000, 500]
    (all_of_them,) = ack_commands.redeliver(3, (), consumer_epoch=2)
    found = command_of(all_of_them).redeliverUnacknowledgedMessages
    assert (len(found.message_ids), found.consumer_epoch) == (0, 2)
