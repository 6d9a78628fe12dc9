"""Table views: newest values, kept fresh; in virtual time."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from pulsar_py.client.reading.table_view import TableView
from pulsar_py.common.errors import AlreadyClosedError, SchemaSerializationError
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID
from pulsar_py.common.names import TopicName
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.wire.payload import encode_entry
from tests.simulated_client import World, simulated

TOPIC = "persistent://public/default/t"


async def put(world: World, **values: str) -> None:
    for key, value in values.items():
        await world.send("t", value, partition_key=key)


def test_a_view_holds_the_newest_values_when_it_is_handed_out() -> None:
    async def work(world: World) -> None:
        await put(world, a="1", b="1")
        await put(world, a="2")
        await world.send("t", "no key")
        async with await world.client.create_table_view("t") as view:
            assert dict(view) == {"a": b"2", "b": b"1"}
            assert (view["a"], view.get("c"), len(view)) == (b"2", None, 2)
            assert sorted(view.keys()) == ["a", "b"]
            assert "b" in view
            assert view.topic() == TOPIC

    simulated(work)


def test_a_view_is_kept_fresh_and_deletes_keys() -> None:
    async def work(world: World) -> None:
        async with await world.client.create_table_view("t") as view:
            assert len(view) == 0
            await put(world, a="1", b="1")
            await view.refresh()
            assert dict(view) == {"a": b"1", "b": b"1"}
            await put(world, a="")
            async with await world.client.create_producer("t") as producer:
                await producer.send(None, partition_key="b")
            await view.refresh()
            assert dict(view) == {}

    simulated(work)


def test_callbacks_get_what_is_there_and_what_comes() -> None:
    async def work(world: World) -> None:
        await put(world, a="1")
        seen: list[tuple[str, Any]] = []
        later: list[tuple[str, Any]] = []
        each: list[tuple[str, Any]] = []
        async with await world.client.create_table_view("t") as view:
            view.for_each(lambda key, value: each.append((key, value)))
            view.for_each_and_listen(lambda key, value: seen.append((key, value)))
            view.listen(lambda key, value: later.append((key, value)))
            await put(world, b="1", a="")
            await view.refresh()
        assert each == [("a", b"1")]
        assert seen == [("a", b"1"), ("b", b"1"), ("a", None)]
        assert later == seen[1:]

    simulated(work)


def test_what_a_callback_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def work(world: World) -> None:
        async with await world.client.create_table_view("t") as view:

            def listener(key: str, value: Any) -> None:
                raise ValueError(f"no {key}")

            view.listen(listener)
            await put(world, a="1")
            await view.refresh()
            assert dict(view) == {"a": b"1"}

    with caplog.at_level(logging.ERROR):
        simulated(work)
    assert "table view listener failed" in caplog.text


def test_a_partitioned_topic_and_its_growth() -> None:
    async def work(world: World) -> None:
        await world.create_partitioned("t", 2)
        await put(world, **{f"k{n}": "1" for n in range(10)})
        async with await world.client.create_table_view("t") as view:
            assert len(view) == 10
            await world.grow("t", 3)
            await world.send(f"{TOPIC}-partition-2", "1", partition_key="grown")
            await asyncio.sleep(62)
            assert view["grown"] == b"1"

    simulated(work)


def test_a_compacted_topic() -> None:
    async def work(world: World) -> None:
        await put(world, a="1", b="1")
        await put(world, a="2", b="")
        async with await world.client.create_table_view("t", is_read_compacted=True) as view:
            assert dict(view) == {"a": b"2"}

    simulated(work)


def test_a_topic_that_is_not_stored_has_nothing_yet() -> None:
    async def work(world: World) -> None:
        topic = "non-persistent://public/default/t"
        async with await world.client.create_table_view(topic) as view:
            await world.send(topic, "1", partition_key="a")
            await asyncio.sleep(1)
            assert dict(view) == {"a": b"1"}

    simulated(work)


def test_what_ends_with_an_entry_that_nobody_can_read_is_there_all_the_same() -> None:
    async def work(world: World) -> None:
        await put(world, a="1")
        async with await world.client.create_table_view("t") as view:
            half = MessageMetadata(
                producer_name="p",
                sequence_id=0,
                publish_time=1,
                uuid="u",
                chunk_id=0,
                num_chunks_from_msg=2,
                total_chunk_msg_size=9,
            )
            topic = world.topics.loaded(TopicName.parse(TOPIC))
            assert isinstance(topic, PersistentTopic)
            await topic.ledger.append_and_wait(encode_entry(half, b"half"))
            await view.refresh()
            async with await world.client.create_table_view("t") as another:
                assert dict(view) == dict(another) == {"a": b"1"}

    simulated(work)


def test_closing_ends_a_refresh_and_keeps_the_values() -> None:
    async def work(world: World) -> None:
        await put(world, a="1")
        view = await world.client.create_table_view("t")
        await view.close()
        assert dict(view) == {"a": b"1"}
        with pytest.raises(AlreadyClosedError):
            await view.refresh()
        await view.close()

    simulated(work)


def test_cancelling_the_making_leaves_nothing_open() -> None:
    async def work(world: World) -> None:
        await put(world, a="1")
        for step in range(1, 12):
            try:
                async with asyncio.timeout(step * 0.001):
                    view = await world.client.create_table_view("t", subscription_name="mine")
            except TimeoutError:
                await asyncio.sleep(1)
            else:
                await view.close()
        async with await world.client.create_reader(
            "t", EARLIEST_MESSAGE_ID, subscription_name="mine"
        ) as reader:
            assert reader.is_connected()

    simulated(work)


def test_a_value_that_does_not_fit_the_schema_leaves_the_old_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work(world: World) -> None:
        async with await world.client.create_table_view("t") as view:
            await put(world, a="1")
            await view.refresh()

            class Unreadable:
                def __getattr__(self, name: str) -> Any:
                    if name == "value":
                        raise SchemaSerializationError("not ours")
                    return getattr(message, name)

            async with await world.client.create_reader("t", EARLIEST_MESSAGE_ID) as reader:
                message = await reader.read_next()
            view._handle(Unreadable())  # type: ignore[arg-type]
            assert dict(view) == {"a": b"1"}

    simulated(work)
    assert "value not read" in caplog.text


def test_views_are_things_of_their_own() -> None:
    async def work(world: World) -> None:
        async with (
            await world.client.create_table_view("t") as one,
            await world.client.create_table_view("t") as other,
        ):
            assert len({one, other}) == 2
            assert isinstance(one, TableView)
            assert repr(one) == f"TableView({TOPIC}, 0 keys, open)"

    simulated(work)
