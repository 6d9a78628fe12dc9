"""What of a connection waits while its producers are at a limit, and what is served."""

from __future__ import annotations

from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandCloseProducer,
    CommandFlow,
    CommandPing,
    CommandProducer,
    MessageIdData,
)
from pulsar_py.server.connection.waiting_publishes import (
    FRAME_BYTES,
    MAX_WAITING_BYTES,
    WaitingBudget,
    WaitingPublishes,
)
from pulsar_py.wire.commands import encode
from pulsar_py.wire.framing import Frame, FrameDecoder
from tests.unit.server.connection.standins import send_frame

PING = CommandPing()
ACK = CommandAck(consumer_id=1, ack_type=0, message_id=[MessageIdData(ledgerId=1, entryId=1)])
FLOW = CommandFlow(consumer_id=1, messagePermits=5)


def frames_of(*data: bytes) -> list[Frame]:
    return FrameDecoder(100_000_000).decode(b"".join(data))


def send(payload: bytes, producer_id: int = 1) -> bytes:
    return send_frame(payload, producer_id=producer_id)


def producer(producer_id: int = 1) -> bytes:
    return encode(CommandProducer(topic="t", producer_id=producer_id, request_id=1))


def close(producer_id: int = 1) -> bytes:
    return encode(CommandCloseProducer(producer_id=producer_id, request_id=1))


def names(frames: list[Frame]) -> list[str]:
    found = []
    for frame in frames:
        command = BaseCommand.FromString(frame.command)
        kind = BaseCommand.Type.Name(command.type)
        found.append((frame.headers_and_payload or kind.encode()).decode())
    return found


def all_of(waiting: WaitingPublishes) -> list[list[str]]:
    turns = []
    while waiting:
        turns.append(names(waiting.take()))
    return turns


def test_publishes_wait_in_order_and_the_rest_is_served() -> None:
    waiting = WaitingPublishes(WaitingBudget(), {1, 2})
    mixed = [send(b"a"), encode(PING), send(b"b", 2), encode(ACK), encode(FLOW), send(b"c")]
    assert names(waiting.keep(frames_of(*mixed))) == ["PING", "ACK", "FLOW"]
    assert all_of(waiting) == [["a", "b", "c"]]
    assert waiting.bytes_count == 0


def test_what_opens_or_closes_a_producer_waits_for_its_sends_alone() -> None:
    waiting = WaitingPublishes(WaitingBudget(), {1, 2})
    mixed = [
        close(),
        producer(),
        send(b"a"),
        producer(2),
        close(2),
        close(),
        producer(),
        send(b"b"),
    ]
    assert names(waiting.keep(frames_of(*mixed))) == [
        "CLOSE_PRODUCER",
        "PRODUCER",
        "PRODUCER",
        "CLOSE_PRODUCER",
    ]
    assert all_of(waiting) == [["a"], ["CLOSE_PRODUCER"], ["PRODUCER"], ["b"]]
    assert names(waiting.keep(frames_of(close()))) == ["CLOSE_PRODUCER"]


def test_fields_in_another_order_make_no_difference() -> None:
    waiting = WaitingPublishes(WaitingBudget(), {1, 2})
    (frame,) = frames_of(send(b"a"))
    turned = Frame(frame.command[2:] + frame.command[:2], b"a")
    (ack,) = frames_of(encode(ACK))
    turned_ack = Frame(ack.command[2:] + ack.command[:2], None)
    large = Frame(bytes((0x0A, 0x90, 0x4E)) + bytes(20_000), None)
    assert waiting.keep([turned, turned_ack, large, Frame(b"\xff", None)]) == [
        turned_ack,
        large,
        Frame(b"\xff", None),
    ]
    assert all_of(waiting) == [["a"]]


def test_sends_of_a_producer_that_was_closed_are_dropped() -> None:
    budget = WaitingBudget()
    waiting = WaitingPublishes(budget, {1, 2})
    mixed = [send(b"a"), send(b"b", 2), close(), producer(), send(b"c")]
    waiting.keep(frames_of(*mixed))
    waiting.forget(1)
    waiting.forget(7)
    assert all_of(waiting) == [["b"], ["CLOSE_PRODUCER"], ["PRODUCER"], ["c"]]
    assert budget.bytes_count == 0
    waiting.keep(frames_of(send(b"a")))
    waiting.forget(1)
    assert names(waiting.keep(frames_of(producer()))) == ["PRODUCER"]


def test_it_is_full_at_its_own_limit_and_at_that_of_all() -> None:
    budget = WaitingBudget(MAX_WAITING_BYTES + 100_000)
    one, two = WaitingPublishes(budget, {1}), WaitingPublishes(budget, {1})
    large = frames_of(send(bytes(1_000_000)))
    while not one.is_full:
        assert one.has_room == (one.bytes_count <= MAX_WAITING_BYTES // 2)
        one.keep(large)
    assert one.bytes_count < MAX_WAITING_BYTES + 1_000_000 + 2 * FRAME_BYTES
    assert two.is_full
    assert not two.has_room
    assert len(one.take()) == 1
    one.clear()
    assert budget.bytes_count == 0
    assert not two.is_full
    assert not one


def test_few_bytes_are_served_together() -> None:
    waiting = WaitingPublishes(WaitingBudget(), {1, 2})
    waiting.keep(frames_of(*(send(bytes(10_000)) for _ in range(20))))
    assert [len(turn) for turn in all_of(waiting)] == [7, 7, 6]


def test_sends_to_a_producer_that_is_gone_are_served_unless_its_next_one_waits() -> None:
    producers = {1}
    waiting = WaitingPublishes(WaitingBudget(), producers)
    waiting.keep(frames_of(send(b"a")))
    producers.clear()
    waiting.forget(1)
    assert names(waiting.keep(frames_of(send(b"late"), producer()))) == ["late", "PRODUCER"]
    producers.add(1)
    waiting.keep(frames_of(send(b"b"), close(), producer(), send(b"c")))
    producers.clear()
    waiting.forget(1)
    assert waiting.keep(frames_of(send(b"d"))) == []
    assert all_of(waiting) == [["CLOSE_PRODUCER"], ["PRODUCER"], ["c", "d"]]
