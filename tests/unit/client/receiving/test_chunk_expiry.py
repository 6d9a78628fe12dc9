from __future__ import annotations

from pulsar_py.client.messages.message import EntryKey
from pulsar_py.client.receiving.chunk_assembly import Chunk, ChunkAssembly
from pulsar_py.client.receiving.chunk_expiry import ChunkExpiry
from tests.unit.client.entries import metadata


class Half:
    """A consumer with the first chunk of a message since second 0."""

    def __init__(self) -> None:
        self.chunks = ChunkAssembly(expire_seconds=60)
        self.expiry = ChunkExpiry(self.chunks)
        self.waiting: list[object] = []
        self.add()

    def add(self) -> None:
        meta = metadata(uuid="u", chunk_id=0, num_chunks_from_msg=2, total_chunk_msg_size=4)
        self.chunks.add(Chunk((1, 0), meta, b"aa"), 0)

    def look(self, now: float, *, can_come: bool = True) -> tuple[list[EntryKey], float | None]:
        outcome, look_at = self.expiry.look(now, self.waiting, can_come=can_come)
        return outcome.to_acknowledge, look_at


def test_a_message_is_given_up_when_its_time_is_over() -> None:
    half = Half()
    assert half.look(59) == ([], 60)
    assert half.look(60) == ([(1, 0)], None)
    assert half.look(61) == ([], None)


def test_what_is_here_may_be_the_rest() -> None:
    half = Half()
    first, last = object(), object()
    half.waiting = [first, last]
    assert half.look(60) == ([], 61)
    half.waiting = [last]
    assert half.look(61) == ([], 62)
    half.waiting = []
    assert half.look(62) == ([(1, 0)], None)


def test_what_came_after_the_time_was_up_is_not_waited_for() -> None:
    half = Half()
    half.waiting = [object()]
    assert half.look(60) == ([], 61)
    half.waiting = [object()]
    assert half.look(61) == ([(1, 0)], None)


def test_time_without_broker_does_not_count() -> None:
    half = Half()
    assert half.look(60, can_come=False) == ([], 120)
    assert half.look(120, can_come=False) == ([], 180)
    assert half.look(180) == ([], 240), "it may have begun to come only just now"
    assert half.look(240) == ([(1, 0)], None)


def test_a_broker_that_goes_while_entries_wait_begins_the_time_anew() -> None:
    half = Half()
    half.waiting = [object()]
    assert half.look(60) == ([], 61)
    assert half.look(61, can_come=False) == ([], 121)
    assert half.look(121) == ([], 181)


def test_cleared_chunks_leave_nothing() -> None:
    half = Half()
    half.waiting = [object()]
    half.look(60)
    half.chunks.clear()
    half.expiry.clear()
    assert half.look(61) == ([], None)
    half.add()
    assert half.look(60) == ([], 61), "those that came since"
