from __future__ import annotations

from pulsar_py.client.messages.message import EntryKey
from pulsar_py.client.receiving.chunk_assembly import Chunk, ChunkAssembly, ChunkOutcome
from tests.unit.client.entries import metadata

PIECES = (b"aaa", b"bb", b"c")


def piece(
    chunk_id: int, key: EntryKey, *, uuid: str = "u", total: int = 6, payload: bytes | None = None
) -> Chunk:
    meta = metadata(uuid=uuid, chunk_id=chunk_id, num_chunks_from_msg=3, total_chunk_msg_size=total)
    return Chunk(key, meta, PIECES[chunk_id] if payload is None else payload)


def add(assembly: ChunkAssembly, chunk: Chunk, now: float = 0) -> ChunkOutcome:
    return assembly.add(chunk, now)


def test_pieces_in_order_make_a_message() -> None:
    assembly = ChunkAssembly()
    assert add(assembly, piece(0, (1, 0))) == ChunkOutcome()
    assert add(assembly, piece(1, (1, 3))) == ChunkOutcome()
    assert assembly.pending_bytes == 5
    outcome = add(assembly, piece(2, (1, 4)))
    assert outcome.payload == b"aaabbc"
    assert outcome.chunk_ids == ((1, 0), (1, 3), (1, 4))
    assert len(assembly) == 0


def test_messages_interleave() -> None:
    assembly = ChunkAssembly()
    for chunk_id in range(2):
        add(assembly, piece(chunk_id, (1, chunk_id), uuid="a"))
        add(assembly, piece(chunk_id, (2, chunk_id), uuid="b"))
    assert add(assembly, piece(2, (2, 2), uuid="b")).payload == b"aaabbc"
    assert add(assembly, piece(2, (1, 2), uuid="a")).payload == b"aaabbc"


def test_a_redelivered_piece_is_dropped() -> None:
    assembly = ChunkAssembly()
    add(assembly, piece(0, (1, 0)))
    add(assembly, piece(1, (1, 1)))
    assert add(assembly, piece(1, (1, 1))) == ChunkOutcome()
    assert add(assembly, piece(2, (1, 2))).payload == b"aaabbc"


def test_a_piece_sent_twice_is_acknowledged() -> None:
    assembly = ChunkAssembly()
    add(assembly, piece(0, (1, 0)))
    add(assembly, piece(1, (1, 1)))
    assert add(assembly, piece(1, (1, 9))).to_acknowledge == [(1, 9)]
    assert add(assembly, piece(2, (1, 10))).payload == b"aaabbc"


def test_a_redelivered_first_piece_begins_anew() -> None:
    assembly = ChunkAssembly()
    add(assembly, piece(0, (1, 0)))
    add(assembly, piece(1, (1, 1)))
    assert add(assembly, piece(0, (1, 0))) == ChunkOutcome()
    add(assembly, piece(1, (1, 1)))
    assert add(assembly, piece(2, (1, 2))).chunk_ids == ((1, 0), (1, 1), (1, 2))


def test_a_producer_that_begins_anew_has_its_first_pieces_acknowledged() -> None:
    assembly = ChunkAssembly()
    add(assembly, piece(0, (1, 0)))
    add(assembly, piece(1, (1, 1)))
    assert add(assembly, piece(0, (1, 5))).to_acknowledge == [(1, 0), (1, 1)]
    add(assembly, piece(1, (1, 6)))
    assert add(assembly, piece(2, (1, 7))).payload == b"aaabbc"


def test_a_gap_drops_the_buffer() -> None:
    assembly = ChunkAssembly()
    add(assembly, piece(0, (1, 0)))
    assert add(assembly, piece(2, (1, 2))).to_redeliver == [(1, 0), (1, 2)]
    assert len(assembly) == 0


def test_after_a_second_gap_nothing_is_asked_for_any_more() -> None:
    assembly = ChunkAssembly(expire_seconds=60)
    for _ in range(2):
        add(assembly, piece(0, (1, 0)))
        outcome = add(assembly, piece(2, (1, 2)))
        assembly.clear()
    assert outcome == ChunkOutcome(held=[(1, 0), (1, 2)])
    add(assembly, piece(0, (1, 0)), now=10)
    add(assembly, piece(2, (1, 2)), now=10)
    assert assembly.expire(60) == ChunkOutcome(to_acknowledge=[(1, 0), (1, 2)])


def test_what_follows_a_piece_that_gave_way_is_asked_for_with_it_and_does_not_expire() -> None:
    assembly = ChunkAssembly(max_pending=1, expire_seconds=60)
    add(assembly, piece(0, (1, 0), uuid="a"))
    assert add(assembly, piece(0, (1, 1), uuid="b")).to_redeliver == [(1, 0)]
    assert add(assembly, piece(1, (1, 2), uuid="a")) == ChunkOutcome(to_redeliver=[(1, 2)])
    assert add(assembly, piece(2, (1, 3), uuid="a")) == ChunkOutcome(to_redeliver=[(1, 3)])
    assert assembly.expire(1000) == ChunkOutcome(to_acknowledge=[(1, 1)])
    for chunk_id, entry_id in enumerate((0, 2, 3)):
        outcome = add(assembly, piece(chunk_id, (1, entry_id), uuid="a"), now=1000)
    assert outcome.payload == b"aaabbc"


def test_the_first_keys_are_those_of_incomplete_messages() -> None:
    assembly = ChunkAssembly()
    add(assembly, piece(0, (1, 0), uuid="a"))
    add(assembly, piece(0, (1, 1), uuid="b"))
    add(assembly, piece(1, (1, 2), uuid="a"))
    assert assembly.first_keys() == [(1, 0), (1, 1)]


def test_a_piece_without_beginning_is_asked_for_again_and_expires() -> None:
    assembly = ChunkAssembly(expire_seconds=60)
    assert add(assembly, piece(1, (1, 1)), now=10) == ChunkOutcome(held=[(1, 1)])
    assert add(assembly, piece(1, (1, 1)), now=40) == ChunkOutcome(held=[(1, 1)])
    assert assembly.next_expiry() == 70
    assert assembly.expire(69.9) == ChunkOutcome()
    assert assembly.expire(70) == ChunkOutcome(to_acknowledge=[(1, 1)])
    assert assembly.next_expiry() is None


def test_a_piece_whose_beginning_came_after_all_does_not_expire() -> None:
    assembly = ChunkAssembly(expire_seconds=60)
    add(assembly, piece(1, (1, 1)), now=0)
    add(assembly, piece(0, (1, 0)), now=50)
    add(assembly, piece(1, (1, 1)), now=51)
    assert assembly.expire(60) == ChunkOutcome()
    assert add(assembly, piece(2, (1, 2)), now=61).payload == b"aaabbc"


def test_a_piece_without_beginning_expires_though_it_comes_again_and_again() -> None:
    assembly = ChunkAssembly(expire_seconds=60)
    add(assembly, piece(1, (1, 1)), now=0)
    assembly.clear()  # as when everything is asked for again
    assert assembly.next_expiry() is None, "while it is not here nothing is decided"
    add(assembly, piece(1, (1, 1)), now=50)
    assert assembly.next_expiry() == 60
    assert assembly.expire(60) == ChunkOutcome(to_acknowledge=[(1, 1)])


def test_time_in_which_nothing_could_come_does_not_count() -> None:
    assembly = ChunkAssembly(expire_seconds=60)
    add(assembly, piece(0, (1, 0)), now=0)
    add(assembly, piece(1, (2, 0), uuid="other"), now=5)
    assembly.wait_anew(50)
    assert assembly.next_expiry() == 110
    assert assembly.expire(109) == ChunkOutcome()
    assert assembly.expire(110) == ChunkOutcome(to_acknowledge=[(1, 0), (2, 0)])


def test_the_oldest_gives_way() -> None:
    assembly = ChunkAssembly(max_pending=2)
    for number, uuid in enumerate("abc"):
        outcome = add(assembly, piece(0, (1, number), uuid=uuid))
    assert outcome.to_redeliver == [(1, 0)]
    assert outcome.to_acknowledge == []
    acknowledging = ChunkAssembly(max_pending=1, is_oldest_acknowledged=True)
    add(acknowledging, piece(0, (1, 0), uuid="a"))
    assert add(acknowledging, piece(0, (1, 1), uuid="b")).to_acknowledge == [(1, 0)]


def test_no_limit_with_zero() -> None:
    assembly = ChunkAssembly(max_pending=0, expire_seconds=0)
    for number in range(100):
        assert add(assembly, piece(0, (1, number), uuid=str(number))) == ChunkOutcome()
    assert assembly.next_expiry() is None


def test_buffers_expire() -> None:
    assembly = ChunkAssembly(expire_seconds=60)
    add(assembly, piece(0, (1, 0), uuid="a"), now=0)
    add(assembly, piece(0, (1, 1), uuid="b"), now=30)
    assert assembly.next_expiry() == 60
    assert assembly.expire(60) == ChunkOutcome(to_acknowledge=[(1, 0)])
    assert assembly.next_expiry() == 90
    assembly.clear()
    assert assembly.next_expiry() is None


def test_more_than_announced_is_refused_at_once() -> None:
    assembly = ChunkAssembly()
    outcome = add(assembly, piece(0, (1, 0), payload=b"x" * 7))
    assert outcome.payload is None
    assert outcome.chunk_ids == ((1, 0),)
    assert outcome.problem is not None
    assert "7 bytes" in outcome.problem
    assert "announced were 6" in outcome.problem
    assert len(assembly) == 0


def test_less_than_announced_is_refused_at_the_end() -> None:
    assembly = ChunkAssembly()
    for chunk_id in range(2):
        add(assembly, piece(chunk_id, (1, chunk_id), total=9))
    outcome = add(assembly, piece(2, (1, 2), total=9))
    assert outcome.problem is not None
    assert "hold 6 bytes, announced were 9" in outcome.problem
    assert outcome.chunk_ids == ((1, 0), (1, 1), (1, 2))


def test_a_listener_gets_what_has_no_beginning() -> None:
    heard: list[tuple[EntryKey, int, bool]] = []
    assembly = ChunkAssembly(
        listener=lambda key, metadata, is_begun: heard.append((key, metadata.chunk_id, is_begun))
    )
    assert add(assembly, piece(2, (1, 0), uuid="torn")) == ChunkOutcome()
    add(assembly, piece(0, (1, 1)))
    add(assembly, piece(1, (1, 2)))
    assert add(assembly, piece(2, (1, 3))).payload == b"aaabbc"
    assert heard == [((1, 0), 2, False), ((1, 1), 0, True), ((1, 2), 1, True), ((1, 3), 2, True)]


def test_what_is_due_expires_whatever_the_clock_says() -> None:
    for now in (0.1, 2.7, 1234.567, 361.4820001):
        assembly = ChunkAssembly(expire_seconds=60.1)
        add(assembly, piece(0, (1, 0)), now=now)
        add(assembly, piece(1, (2, 0), uuid="other"), now=now)
        due = assembly.next_expiry()
        assert due is not None
        assert assembly.expire(due).to_acknowledge == [(1, 0), (2, 0)]
