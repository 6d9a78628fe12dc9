"""Readers: where they begin, what is left, seeking, partitions, listeners; in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pulsar_py.client.consuming.key_shared_policy import KeyHashRange
from pulsar_py.client.messages.message import Message
from pulsar_py.client.reading.reader import Reader, create_reader
from pulsar_py.common.errors import (
    AlreadyClosedError,
    ClientTimeoutError,
    InvalidConfigurationError,
    OperationNotSupportedError,
)
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, LATEST_MESSAGE_ID, MessageId
from tests.simulated_client import World, simulated

TOPIC = "persistent://public/default/t"


async def read(reader: Reader, count: int) -> list[bytes]:
    return [(await reader.read_next(30_000)).data() for _ in range(count)]


async def read_all(reader: Reader) -> list[bytes]:
    data = []
    while await reader.has_message_available():
        data.append((await reader.read_next(30_000)).data())
    return data


def test_reading_from_the_beginning_to_the_end() -> None:
    async def work(world: World) -> None:
        await world.send("t", "0", "1", "2")
        async with await world.client.create_reader("t", EARLIEST_MESSAGE_ID) as reader:
            assert reader.topic() == TOPIC
            assert reader.topics() == [TOPIC]
            assert reader.is_connected()
            assert await read_all(reader) == [b"0", b"1", b"2"]
            await world.send("t", "3")
            assert await reader.has_message_available()
            assert await read_all(reader) == [b"3"]
            assert await reader.read_nowait() is None
        assert reader.is_closed
        with pytest.raises(AlreadyClosedError):
            await reader.read_next()

    simulated(work)


def test_reading_what_comes_from_now_on() -> None:
    async def work(world: World) -> None:
        await world.send("t", "old")
        async with await world.client.create_reader("t", LATEST_MESSAGE_ID) as reader:
            assert not await reader.has_message_available()
            with pytest.raises(ClientTimeoutError):
                await reader.read_next(100)
            await world.send("t", "new")
            assert await read(reader, 1) == [b"new"]

    simulated(work)


@pytest.mark.parametrize(("inclusive", "expected"), [(False, [b"2"]), (True, [b"1", b"2"])])
def test_beginning_at_or_after_a_message(inclusive: bool, expected: list[bytes]) -> None:  # noqa: FBT001
    async def work(world: World) -> None:
        await world.send("t", "0", "1", "2")
        async with await world.client.create_reader("t", EARLIEST_MESSAGE_ID) as reader:
            ids = [(await reader.read_next()).message_id().serialize() for _ in range(3)]
        async with await world.client.create_reader(
            "t", MessageId.parse(ids[1]), start_message_id_inclusive=inclusive
        ) as reader:
            assert await read_all(reader) == expected

    simulated(work)


def test_beginning_within_a_batch() -> None:
    async def work(world: World) -> None:
        async with await world.client.create_producer(
            "t", batching_enabled=True, batching_max_messages=4
        ) as producer:
            sent = [producer.send_nowait(b"%d" % n) for n in range(4)]
            ids = [await each for each in sent]
        async with await world.client.create_reader("t", ids[1]) as reader:
            assert await read_all(reader) == [b"2", b"3"]

    simulated(work)


def test_beginning_by_time() -> None:
    async def work(world: World) -> None:
        await world.send("t", "old")
        await asyncio.sleep(100)
        at = world.clock.wall_time_millis()
        await asyncio.sleep(10)
        await world.send("t", "new")
        create = world.client.context
        async with await _create(
            create, "t", start_message_from_rollback_duration_seconds=50
        ) as reader:
            assert await read(reader, 1) == [b"new"]
        async with await _create(create, "t", start_message_from_timestamp_millis=at) as reader:
            assert await read(reader, 1) == [b"new"]
        with pytest.raises(InvalidConfigurationError, match="exclude each other"):
            await _create(create, "t", EARLIEST_MESSAGE_ID, start_message_from_timestamp_millis=at)

    simulated(work)


async def _create(context: Any, topic: str, start: Any = None, **options: Any) -> Reader:
    return await create_reader(context, topic, start, **options)


def test_seeking() -> None:
    async def work(world: World) -> None:
        await world.send("t", "0")
        await asyncio.sleep(10)
        at = world.clock.wall_time_millis()
        await world.send("t", "1", "2")
        async with await world.client.create_reader("t", EARLIEST_MESSAGE_ID) as reader:
            message = await reader.read_next()
            assert await read(reader, 2) == [b"1", b"2"]
            await reader.seek(message.message_id())
            assert await read_all(reader) == [b"1", b"2"]
            await reader.seek(EARLIEST_MESSAGE_ID)
            assert await read_all(reader) == [b"0", b"1", b"2"]
            await reader.seek(at)
            assert await read(reader, 2) == [b"1", b"2"]
            await reader.seek(LATEST_MESSAGE_ID)
            assert not await reader.has_message_available()

    simulated(work)


def test_iterating_ends_with_the_reader() -> None:
    async def work(world: World) -> None:
        await world.send("t", "0", "1")
        reader = await world.client.create_reader("t", EARLIEST_MESSAGE_ID)
        seen = []
        async for message in reader:
            seen.append(message.data())
            if len(seen) == 2:
                await reader.close()
        assert seen == [b"0", b"1"]
        await reader.close()

    simulated(work)


def test_what_was_read_is_not_read_again_after_a_reconnect() -> None:
    async def work(world: World) -> None:
        await world.send("t", *(str(n) for n in range(10)))
        async with await world.client.create_reader("t", EARLIEST_MESSAGE_ID) as reader:
            assert len(await read(reader, 4)) == 4
            for connection in list(asyncio.get_running_loop().network.connections):  # type: ignore[attr-defined] # of SimulatedLoop
                connection.abort()
            await asyncio.sleep(5)
            assert await read_all(reader) == [b"%d" % n for n in range(4, 10)]

    simulated(work)


def test_only_keys_of_some_hash_ranges() -> None:
    async def work(world: World) -> None:
        lower, upper = KeyHashRange(0, 32767), KeyHashRange(32768, 65535)
        keys = [f"key-{n}" for n in range(40)]
        for key in keys:
            await world.send("t", key, partition_key=key)
        for hash_range in (lower, upper):
            async with await world.client.create_reader(
                "t", EARLIEST_MESSAGE_ID, key_hash_ranges=[hash_range]
            ) as reader:
                expected = [key.encode() for key in keys if hash_range.contains(key.encode())]
                assert 0 < len(expected) < len(keys)
                assert await read(reader, len(expected)) == expected
                with pytest.raises(ClientTimeoutError):
                    await reader.read_next(1000)

    simulated(work)


def test_names_of_subscription_and_reader() -> None:
    async def work(world: World) -> None:
        async with (
            await world.client.create_reader("t", EARLIEST_MESSAGE_ID) as plain,
            await world.client.create_reader(
                "t", EARLIEST_MESSAGE_ID, subscription_role_prefix="role"
            ) as prefixed,
            await world.client.create_reader(
                "t", EARLIEST_MESSAGE_ID, subscription_name="mine"
            ) as named,
        ):
            assert plain.subscription_name().startswith("reader-")
            assert prefixed.subscription_name().startswith("role-reader-")
            assert named.subscription_name() == "mine"

    simulated(work)


def test_a_listener_instead_of_reading() -> None:
    async def work(world: World) -> None:
        seen: list[tuple[Reader, bytes]] = []

        def listener(reader: Reader, message: Message) -> None:
            seen.append((reader, message.data()))
            if message.data() == b"bad":
                raise ValueError("bad")

        await world.send("t", "bad", "good")
        async with await world.client.create_reader(
            "t", EARLIEST_MESSAGE_ID, reader_listener=listener
        ) as reader:
            await asyncio.sleep(1)
            assert seen == [(reader, b"bad"), (reader, b"good")]
            with pytest.raises(OperationNotSupportedError, match="reader_listener"):
                await reader.read_next()

    simulated(work)


def test_a_partitioned_topic_is_read_as_a_whole() -> None:
    async def work(world: World) -> None:
        await world.create_partitioned("t", 3)
        for index in range(3):
            await world.send(f"{TOPIC}-partition-{index}", f"{index}0", f"{index}1")
        async with await world.client.create_reader("t", EARLIEST_MESSAGE_ID) as reader:
            assert len(reader.topics()) == 3
            messages = [await reader.read_next(1000) for _ in range(6)]
            assert {each.data() for each in messages} == {
                b"%d%d" % (index, n) for index in range(3) for n in range(2)
            }
            assert not await reader.has_message_available()
            assert [each.entry_id for each in await reader.get_last_message_ids()] == [1, 1, 1]
            await reader.seek(EARLIEST_MESSAGE_ID)
            assert len(await read_all(reader)) == 6
            await world.grow("t", 4)
            await world.send(f"{TOPIC}-partition-3", "grown")
            assert (await reader.read_next(61_000)).data() == b"grown"

    simulated(work)


def test_a_partitioned_topic_can_begin_partition_by_partition() -> None:
    async def work(world: World) -> None:
        await world.create_partitioned("t", 2)
        partitions = [f"{TOPIC}-partition-{index}" for index in range(2)]
        for index in range(2):
            await world.send(partitions[index], f"{index}0", f"{index}1")
        async with await world.client.create_reader("t", EARLIEST_MESSAGE_ID) as reader:
            ids = {}
            for _ in range(4):
                message = await reader.read_next(1000)
                ids[message.data()] = message.message_id()
        async with await world.client.create_reader("t", {partitions[0]: ids[b"00"]}) as reader:
            assert sorted(await read_all(reader)) == [b"01", b"10", b"11"]
        with pytest.raises(InvalidConfigurationError, match="is of one partition"):
            await world.client.create_reader("t", ids[b"00"])
        with pytest.raises(InvalidConfigurationError, match="no partition of its 2"):
            await world.client.create_reader("t", {f"{TOPIC}-partition-9": ids[b"00"]})

    simulated(work)


def test_a_mapping_is_for_partitions_but_may_name_the_topic() -> None:
    async def work(world: World) -> None:
        await world.send("t", "0", "1")
        async with await world.client.create_reader("t", {"t": EARLIEST_MESSAGE_ID}) as reader:
            assert await read_all(reader) == [b"0", b"1"]
            with pytest.raises(OperationNotSupportedError, match="partitioned"):
                await reader.seek({TOPIC: EARLIEST_MESSAGE_ID})
            assert [str(each) for each in await reader.get_last_message_ids()] == ["1:1:-1"]
            assert reader.statistics().total_messages_received == 2
            assert not reader.has_reached_end_of_topic

    simulated(work)
