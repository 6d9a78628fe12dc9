from __future__ import annotations

from pulsar_py.server.dispatch import chunks
from pulsar_py.server.dispatch.chunks import ChunkAffinity, ChunkHolders
from pulsar_py.server.dispatch.pending_acks import PositionKey
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


class Holder:
    def __init__(self, *positions: PositionKey) -> None:
        self.pending_acks = set(positions)


def test_a_message_is_held_by_who_has_a_chunk_of_it_unacknowledged() -> None:
    holders: ChunkHolders[Holder] = ChunkHolders()
    consumer = Holder((1, 0))
    holders.on_sent((1, 0), "u", consumer)
    holders.on_waiting((1, 1), "u")
    holders.on_waiting((1, 2), None)
    assert holders.holder("u") is consumer
    assert (holders.uuid_of((1, 1)), holders.uuid_of((1, 2))) == ("u", None)
    consumer.pending_acks.clear()
    assert holders.holder("u") is None
    assert holders.holder("v") is None
    assert holders.holder(None) is None
    holders.check()


def test_chunks_are_known_until_they_are_done_with() -> None:
    holders: ChunkHolders[Holder] = ChunkHolders()
    consumer = Holder((1, 0), (1, 1))
    holders.on_sent((1, 0), "u", consumer)
    holders.on_sent((1, 1), "u", consumer)
    holders.on_sent((1, 2), None, consumer)
    assert len(holders) == 2
    assert holders.forget((1, 0))
    assert not holders.forget((1, 1))
    assert not holders.forget((1, 2))
    assert not holders
    holders.check()


def test_chunks_up_to_a_position_are_forgotten() -> None:
    holders: ChunkHolders[Holder] = ChunkHolders()
    for entry_id in range(3):
        holders.on_waiting((1, entry_id), f"u{entry_id}")
    holders.forget_up_to((1, 1))
    assert [holders.uuid_of((1, entry_id)) for entry_id in range(3)] == [None, None, "u2"]
    holders.clear()
    assert not holders
    holders.check()


def test_messages_of_a_consumer_that_left_are_held_by_nobody() -> None:
    holders: ChunkHolders[Holder] = ChunkHolders()
    consumer = Holder((1, 0))
    holders.on_sent((1, 0), "u", consumer)
    holders.forget_consumer(consumer)
    assert holders.holder("u") is None
    assert holders.uuid_of((1, 0)) == "u"


def test_parked_chunks_up_to_a_position_are_forgotten() -> None:
    affinity: ChunkAffinity[str] = ChunkAffinity()
    affinity.park((1, 1), "a")
    affinity.park((1, 2), "a")
    affinity.forget_up_to((1, 1))
    assert affinity.parked_for((1, 1)) is None
    assert affinity.parked_for((1, 2)) == "a"
