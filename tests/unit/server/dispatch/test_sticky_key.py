from __future__ import annotations

import asyncio

from pulsar_py.server.dispatch.sticky_key import StickyKeyDispatcher
from pulsar_py.server.dispatch.subscribe_request import KeySharedMeta, SubscriptionType
from pulsar_py.server.subscriptions.consumer import Consumer
from tests.dispatch_parts import (
    FakeConnection,
    Topic,
    ack,
    message,
    messages_of,
    received,
    redeliver,
    settle,
)

KEY_SHARED = SubscriptionType.KEY_SHARED
KEYS = [f"k{index}" for index in range(8)]
OF_C1 = [0, 3, 7]  # As recorded, for consumers named c1 and c2.
OF_C2 = [1, 2, 4, 5, 6]


def keyed(*keys: str) -> list[bytes]:
    return [message(partition_key=key) for key in keys]


async def join(topic: Topic, number: int, *, permits: int = 100, **request: object) -> Consumer:
    return await topic.consume(
        number, KEY_SHARED, permits=permits, consumer_name=f"c{number}", **request
    )


def ranges(*pairs: tuple[int, int]) -> KeySharedMeta:
    return KeySharedMeta(is_sticky=True, hash_ranges=pairs)


async def test_a_key_goes_to_the_owner_of_its_slot(topic: Topic) -> None:
    c1, c2 = await join(topic, 1), await join(topic, 2)
    await topic.publish(*keyed(*KEYS))
    await settle()
    assert (received(c1), received(c2)) == (OF_C1, OF_C2)


async def test_what_a_consumer_held_goes_to_the_one_that_is_left(topic: Topic) -> None:
    c1, c2 = await join(topic, 1), await join(topic, 2)
    await topic.publish(*keyed(*KEYS))
    await settle()
    c2.close()
    await settle()
    assert received(c1) == OF_C1 + OF_C2
    await topic.publish(*keyed(*KEYS[:4]))
    await settle()
    assert received(c1)[8:] == [8, 9, 10, 11]


async def test_a_key_stays_until_its_entries_are_acknowledged(topic: Topic) -> None:
    c1 = await join(topic, 1)
    await topic.publish(*keyed(*KEYS))
    await settle()
    c2 = await join(topic, 2)
    await topic.publish(*keyed(*KEYS))
    await asyncio.sleep(1)
    assert received(c1)[8:] == [8 + index for index in OF_C1]
    assert received(c2) == []
    assert c1.stats().draining_hashes_count == len(OF_C2)
    ack(c1, *range(8))
    await asyncio.sleep(1)
    assert received(c2) == [8 + index for index in OF_C2]
    assert c1.stats().draining_hashes_count == 0
    assert c1.stats().draining_hashes_cleared_total == len(OF_C2)


async def test_other_keys_of_a_newcomer_flow_while_one_drains(topic: Topic) -> None:
    c1 = await join(topic, 1)
    await topic.publish(*keyed("k1"))
    await settle()
    c2 = await join(topic, 2)
    await topic.publish(*keyed("k1", "k2", "k0"))
    await settle()
    assert (received(c1), received(c2)) == ([0, 3], [2])
    c1.close()
    await settle()
    assert received(c2) == [2, 0, 1, 3]


async def test_a_hash_that_is_given_back_by_redelivery_moves(topic: Topic) -> None:
    c1 = await join(topic, 1)
    await topic.publish(*keyed("k1"))
    await settle()
    c2 = await join(topic, 2)
    await topic.publish(*keyed("k1"))
    await settle()
    redeliver(c1, 0)
    await asyncio.sleep(1)
    assert received(c2) == [0, 1]


async def test_out_of_order_a_slot_moves_at_once(topic: Topic) -> None:
    meta = KeySharedMeta(allow_out_of_order_delivery=True)
    c1 = await join(topic, 1, key_shared=meta)
    await topic.publish(*keyed(*KEYS))
    await settle()
    c2 = await join(topic, 2, key_shared=meta)
    await topic.publish(*keyed(*KEYS))
    await settle()
    assert received(c1)[8:] == [8 + index for index in OF_C1]
    assert received(c2) == [8 + index for index in OF_C2]


async def test_sticky_slots_of_nobody_wait_and_block_nobody(topic: Topic) -> None:
    connection = FakeConnection()
    consumers = []
    for number, pair in enumerate([(0, 20000), (20001, 25000), (25001, 41357)]):
        consumers.append(await join(topic, number, connection=connection, key_shared=ranges(pair)))
    await topic.publish(*keyed("a", "key-1", "key-2", "key-3", "order-42", "a"))
    await settle()
    assert [received(each) for each in consumers] == [[1], [2, 3], [0, 5]]
    late = await join(topic, 9, connection=connection, key_shared=ranges((41358, 65535)))
    await settle()
    assert received(late) == [4]


async def test_the_key_of_an_entry(topic: Topic) -> None:
    low = await join(topic, 1, key_shared=ranges((0, 25000)))
    high = await join(topic, 2, key_shared=ranges((25001, 65535)))
    await topic.publish(
        message(partition_key="a"),
        message(partition_key="a", ordering_key=b"key-1"),
        message(ordering_key=b"a"),
        message(partition_key="a2V5LTE=", partition_key_b64_encoded=True),
        message(partition_key="a2V5LTE="),
        message(sequence_id=5),
        message(partition_key=""),
        message(batch=2, partition_key="key-1"),
    )
    await settle()
    assert (received(low), received(high)) == ([1, 3, 4, 6, 7], [0, 2, 5])


async def test_a_key_without_permits_holds_back_its_newer_entries_only(topic: Topic) -> None:
    c1 = await join(topic, 1, permits=1)
    c2 = await join(topic, 2)
    await topic.publish(*keyed("k0", "k1", "k0", "k2", "k3"))
    await settle()
    assert (received(c1), received(c2)) == ([0], [1, 3])
    c1.flow(1)
    await settle()
    assert received(c1) == [0, 2]
    c1.flow(5)
    await settle()
    assert received(c1) == [0, 2, 4]


async def test_reading_ahead_ends_at_the_limit(topic: Topic) -> None:
    topic.set(look_ahead_per_consumer=3, max_read_batch_entries=1)
    c1 = await join(topic, 1, permits=1)
    c2 = await join(topic, 2)
    await topic.publish(*keyed(*["k0"] * 10, "k1"))
    await settle()
    assert (received(c1), received(c2)) == ([0], [])
    assert c1.subscription.stats().replay_entries == 6
    c1.flow(100)
    await settle()
    assert (received(c1), received(c2)) == (list(range(10)), [10])


async def test_hash_ranges_by_splitting(topic: Topic) -> None:
    topic.set(uses_consistent_hashing=False)
    c1, c2 = await join(topic, 1), await join(topic, 2)
    assert c1.stats().key_hash_ranges == ((32769, 65536),)
    assert c2.stats().key_hash_ranges == ((0, 32768),)
    await topic.publish(*keyed("a", "key-1", "order-42"))
    await settle()
    assert (received(c1), received(c2)) == ([2], [0, 1])


async def test_delayed_messages_keep_to_their_keys_owner(topic: Topic) -> None:
    later = topic.clock.wall_time_millis() + 5000
    c1, c2 = await join(topic, 1), await join(topic, 2)
    await topic.publish(
        *[message(partition_key=key, deliver_at_time=later) for key in ("k0", "k1")]
    )
    await asyncio.sleep(6)
    assert (received(c1), received(c2)) == ([0], [1])
    assert {each.redelivery_count for each in messages_of(c1)} == {0}


async def test_a_mode_or_order_that_differs_is_told(topic: Topic) -> None:
    consumer = await join(topic, 1)
    dispatcher = consumer.subscription.dispatcher
    assert isinstance(dispatcher, StickyKeyDispatcher)
    assert dispatcher.mismatch(None) is None
    assert dispatcher.mismatch(KeySharedMeta()) is None
    mode = dispatcher.mismatch(ranges((0, 1)))
    assert mode is not None
    assert "'AUTO_SPLIT' is different than the connecting consumer's key_shared mode 'STICKY'" in (
        mode
    )
    assert dispatcher.mismatch(KeySharedMeta(allow_out_of_order_delivery=True)) is not None


def chunk(uuid: str, chunk_id: int, count: int = 2, key: str = "k1") -> bytes:
    """Of a message whose key moves to c2 when that joins."""
    return message(
        partition_key=key,
        uuid=uuid,
        chunk_id=chunk_id,
        num_chunks_from_msg=count,
        total_chunk_msg_size=count,
    )


def check_chunks(consumer: Consumer) -> None:
    dispatcher = consumer.subscription.dispatcher
    assert isinstance(dispatcher, StickyKeyDispatcher)
    dispatcher.chunk_holders.check()
    dispatcher.redelivery.check()


async def test_a_begun_message_ends_where_it_began_while_its_key_drains(topic: Topic) -> None:
    c1 = await join(topic, 1)
    await topic.publish(chunk("u", 0))
    await settle()
    c2 = await join(topic, 2)
    await topic.publish(chunk("u", 1), *keyed("k1"))
    await settle()
    assert (received(c1), received(c2)) == ([0, 1], [])
    ack(c1, 0, 1)
    await asyncio.sleep(1)
    assert (received(c1), received(c2)) == ([0, 1], [2])
    ack(c2, 2, ledger_id=1)
    dispatcher = c1.subscription.dispatcher
    assert isinstance(dispatcher, StickyKeyDispatcher)
    assert not dispatcher.chunk_holders


async def test_a_begun_message_passes_what_waits_for_the_new_owner(topic: Topic) -> None:
    c1 = await join(topic, 1)
    await topic.publish(chunk("u", 0, 3), chunk("v", 0))
    await settle()
    c2 = await join(topic, 2)
    await topic.publish(*keyed("k1"), chunk("w", 0), chunk("u", 1, 3), chunk("w", 1), chunk("v", 1))
    await settle()
    assert (received(c1), received(c2)) == ([0, 1, 4, 6], [])
    await topic.publish(chunk("u", 2, 3))
    await settle()
    assert received(c1) == [0, 1, 4, 6, 7]
    ack(c1, 1, 6, 0, 4)
    await asyncio.sleep(1)
    assert received(c2) == []
    ack(c1, 7)
    await asyncio.sleep(1)
    assert received(c2) == [2, 3, 5]
    check_chunks(c1)


async def test_chunks_wait_for_permits_of_their_holder_in_order(topic: Topic) -> None:
    c1 = await join(topic, 1, permits=2)
    await topic.publish(chunk("u", 0, 4), chunk("u", 1, 4), chunk("u", 2, 4))
    await settle()
    c2 = await join(topic, 2)
    await topic.publish(chunk("u", 3, 4), *keyed("k1", "k2"))
    await settle()
    assert (received(c1), received(c2)) == ([0, 1], [5])
    c1.flow(1)
    await settle()
    assert received(c1) == [0, 1, 2]
    c1.flow(1)
    await settle()
    assert received(c1) == [0, 1, 2, 3]
    check_chunks(c1)


async def test_a_chunk_that_was_read_late_does_not_pass_one_that_waits(topic: Topic) -> None:
    c1 = await join(topic, 1, permits=1)
    await topic.publish(chunk("u", 0, 3))
    await settle()
    await join(topic, 2)
    await topic.publish(chunk("u", 1, 3))
    await settle()
    topic.set(max_read_batch_entries=1)
    await topic.publish(chunk("u", 2, 3))
    c1.flow(5)
    await settle()
    assert received(c1) == [0, 1, 2]


async def test_what_is_left_of_a_message_goes_on_when_its_begin_is_acknowledged(
    topic: Topic,
) -> None:
    c1 = await join(topic, 1, permits=1)
    await topic.publish(chunk("u", 0))
    await settle()
    c2 = await join(topic, 2)
    await topic.publish(chunk("u", 1), *keyed("k1"))
    await settle()
    assert received(c2) == []
    ack(c1, 0)
    await asyncio.sleep(1)
    assert (received(c1), received(c2)) == ([0], [1, 2])


async def test_all_chunks_of_a_consumer_that_leaves_go_to_the_new_owner(topic: Topic) -> None:
    c1 = await join(topic, 1)
    await topic.publish(chunk("u", 0, 3))
    await settle()
    c2 = await join(topic, 2)
    await topic.publish(chunk("u", 1, 3), *keyed("k1"))
    await settle()
    assert received(c1) == [0, 1]
    c1.close()
    await settle()
    await topic.publish(chunk("u", 2, 3))
    await settle()
    assert received(c2) == [0, 1, 2, 3]
    check_chunks(c2)


async def test_a_message_sent_again_stays_together_when_its_key_moves_meanwhile(
    topic: Topic,
) -> None:
    c1 = await join(topic, 1)
    await topic.publish(chunk("u", 0), chunk("u", 1))
    c3 = await join(topic, 3, permits=1)
    await settle()
    assert received(c1) == [0, 1]
    c1.close()
    await settle()
    assert received(c3) == [0]
    c1 = await join(topic, 1)
    c2 = await join(topic, 2)
    await settle()
    assert (received(c1), received(c2)) == ([], [])
    c3.flow(1)
    await settle()
    assert received(c3) == [0, 1]


async def test_a_chunk_that_is_given_back_comes_again_to_who_holds_the_others(
    topic: Topic,
) -> None:
    c1 = await join(topic, 1)
    await topic.publish(chunk("u", 0), chunk("u", 1))
    await settle()
    c2 = await join(topic, 2)
    redeliver(c1, 1)
    await settle()
    assert (received(c1), received(c2)) == ([0, 1, 1], [])
    redeliver(c1)
    await asyncio.sleep(1)
    assert (received(c1), received(c2)) == ([0, 1, 1], [0, 1])


async def test_out_of_order_a_begun_message_stays_and_its_key_moves(topic: Topic) -> None:
    meta = KeySharedMeta(allow_out_of_order_delivery=True)
    c1 = await join(topic, 1, permits=1, key_shared=meta)
    await topic.publish(chunk("u", 0))
    await settle()
    c2 = await join(topic, 2, key_shared=meta)
    await topic.publish(chunk("u", 1), *keyed("k1"))
    await settle()
    assert (received(c1), received(c2)) == ([0], [2])
    c1.flow(1)
    await settle()
    assert received(c1) == [0, 1]


async def test_expired_chunks_are_forgotten(topic: Topic) -> None:
    c1 = await join(topic, 1)
    positions = await topic.publish(chunk("u", 0), chunk("u", 1))
    await settle()
    dispatcher = c1.subscription.dispatcher
    assert isinstance(dispatcher, StickyKeyDispatcher)
    assert len(dispatcher.chunk_holders) == 2
    dispatcher.on_mark_delete_moved(positions[1])
    assert not dispatcher.chunk_holders
    check_chunks(c1)


async def test_closing_leaves_no_slots_to_anybody(topic: Topic) -> None:
    await topic.publish(*keyed("a", "b", "c"))
    first = await join(topic, 1)
    await join(topic, 2)
    await settle()
    dispatcher = first.subscription.dispatcher
    assert isinstance(dispatcher, StickyKeyDispatcher)
    dispatcher.close()
    assert dispatcher.ranges_of(first) == []
    assert dispatcher.selector.select(1) is None
    assert dispatcher.draining.draining_from(first) == []
