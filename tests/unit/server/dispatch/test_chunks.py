from __future__ import annotations

from pulsar_py.server.dispatch import chunks
from pulsar_py.server.dispatch.chunks import ChunkAffinity
from pulsar_py.wire.entry_summary import EntrySummary, summarize_entry
from tests.dispatch_parts import message


def chunk(uuid: str, chunk_id: int, count: int = 3) -> EntrySummary:
    return summarize_entry(
        message(uuid=uuid, chunk_id=chunk_id, num_chunks_from_msg=count, total_chunk_msg_size=9)
    )


def test_who_gets_the_first_chunk_owns_the_message_up_to_its_last() -> None:
    affinity: ChunkAffinity[str] = ChunkAffinity()
    assert affinity.owner(chunk("u", 0)) is None
    affinity.on_sent((1, 0), chunk("u", 0), "a")
    assert affinity.owner(chunk("u", 1)) == "a"
    assert affinity.owner(chunk("v", 1)) is None
    affinity.on_sent((1, 2), chunk("u", 2), "a")
    assert affinity.owner(chunk("u", 1)) is None


def test_whole_messages_have_no_owner() -> None:
    affinity: ChunkAffinity[str] = ChunkAffinity()
    whole = summarize_entry(message())
    affinity.on_sent((1, 0), whole, "a")
    assert affinity.owner(whole) is None


def test_a_parked_chunk_waits_for_its_owner_until_it_is_sent_or_gone() -> None:
    affinity: ChunkAffinity[str] = ChunkAffinity()
    affinity.park((1, 1), "a")
    affinity.park((1, 2), "a")
    assert affinity.parked_for((1, 1)) == "a"
    affinity.on_sent((1, 1), chunk("u", 1), "a")
    affinity.forget_position((1, 2))
    assert not affinity.has_parked


def test_a_consumer_that_leaves_owns_nothing() -> None:
    affinity: ChunkAffinity[str] = ChunkAffinity()
    affinity.on_sent((1, 0), chunk("u", 0), "a")
    affinity.on_sent((1, 1), chunk("v", 0), "b")
    affinity.park((1, 2), "a")
    affinity.forget_consumer("a")
    assert affinity.owner(chunk("u", 1)) is None
    assert affinity.owner(chunk("v", 1)) == "b"
    assert not affinity.has_parked


def test_open_messages_are_bounded() -> None:
    affinity: ChunkAffinity[str] = ChunkAffinity()
    for index in range(chunks.MAX_OPEN_MESSAGES + 1):
        affinity.on_sent((1, index), chunk(f"u{index}", 0), "a")
    assert affinity.owner(chunk("u0", 1)) is None
    assert affinity.owner(chunk("u1", 1)) == "a"
    affinity.clear()
    assert affinity.owner(chunk("u1", 1)) is None


def test_parked_chunks_fill_up() -> None:
    affinity: ChunkAffinity[str] = ChunkAffinity()
    for index in range(chunks.MAX_PARKED_CHUNKS):
        assert not affinity.is_full
        affinity.park((1, index), "a")
    assert affinity.is_full
