"""Plans of batches and of micro-batches, on topics of a broker in memory with ledgers of ten."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from pulsar_py import Broker
from pulsar_py.client import Client
from pulsar_py.client.shared.enums import InitialPosition
from pulsar_py.common.errors import ConfigurationError, TopicNotFoundError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import Position
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.spark.planning.plans import DataLossError, PlannedPiece, StreamPlanner, plan_batch
from pulsar_py.spark.planning.pruning import Pruning
from pulsar_py.spark.shared.offsets import StreamOffset
from pulsar_py.wire.payload import encode_entry
from tests.unit.spark.broker_parts import BROKER_CONFIG, publish, read_options

TOPIC = "persistent://public/default/plans"


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(config=BROKER_CONFIG) as broker:
        yield broker


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[Client]:
    async with Client(broker.service_url) as client:
        yield client


def covered(planned: Iterable[PlannedPiece], positions: list[Position]) -> list[int]:
    """Which of the published messages lie in the pieces."""
    return [
        index
        for each in planned
        for index, position in enumerate(positions)
        if each.piece.start <= position < each.piece.end
    ]


def planner_of(broker: Broker, client: Client, **options: str) -> StreamPlanner:
    given = {"topic": TOPIC, "admin_url": broker.web_service_url} | options
    return StreamPlanner(client, read_options(broker.service_url, is_streaming=True, **given))


async def plan(broker: Broker, client: Client, **options: str) -> list[PlannedPiece]:
    given = {"topic": TOPIC, "admin_url": broker.web_service_url} | options
    return await plan_batch(client, read_options(broker.service_url, **given))


async def test_a_batch_is_cut_at_ledgers(broker: Broker, client: Client) -> None:
    positions = await publish(client, TOPIC, range(25))
    planned = await plan(broker, client)
    assert len(planned) == len({position.ledger_id for position in positions}) == 3
    assert covered(planned, positions) == list(range(25))


async def test_without_an_admin_url_a_topic_is_one_piece(broker: Broker, client: Client) -> None:
    positions = await publish(client, TOPIC, range(25))
    planned = await plan_batch(client, read_options(broker.service_url, topic=TOPIC))
    assert len(planned) == 1
    assert covered(planned, positions) == list(range(25))


async def test_bounds_of_users_are_inclusive(broker: Broker, client: Client) -> None:
    positions = await publish(client, TOPIC, range(25))
    planned = await plan(
        broker,
        client,
        startingOffsets=json.dumps({TOPIC: f"{positions[3]}:0"}),
        endingOffsets=json.dumps({"plans": str(positions[17])}),
    )
    assert covered(planned, positions) == list(range(3, 18))
    assert planned[0].first_batch_index == 0
    assert planned[1].first_batch_index == -1


async def test_times_are_bounds_of_positions_and_of_messages(
    broker: Broker, client: Client
) -> None:
    positions = await publish(client, TOPIC, range(3))
    async with await client.subscribe(
        TOPIC, "s", initial_position=InitialPosition.Earliest
    ) as consumer:
        at = (await consumer.receive()).publish_timestamp()
    (piece,) = await plan(broker, client, startingTime=str(at), endingTime=str(at + 5))
    assert (piece.min_publish_millis, piece.max_publish_millis) == (at, at + 5)
    assert covered([piece], positions)[0] == 0
    assert await plan(broker, client, startingTime=str(at + 3_600_000)) == []


class SetClock(SystemClock):
    """A producer's clock that shows what it is set to."""

    def __init__(self) -> None:
        self.wall_millis = 0

    def wall_time_millis(self) -> int:
        return self.wall_millis


async def publish_out_of_order(broker: Broker) -> tuple[list[Position], list[int]]:
    """Messages of two producers in turn, one of whose clocks is late; with their publish times."""
    positions, times = [], []
    fast, late = SetClock(), SetClock()
    async with (
        Client(broker.service_url, clock=fast) as one,
        Client(broker.service_url, clock=late) as other,
        await one.create_producer(TOPIC, batching_enabled=False) as fast_producer,
        await other.create_producer(TOPIC, batching_enabled=False) as late_producer,
    ):
        for number in range(40):
            fast.wall_millis = late.wall_millis = 1_000_000 + number * 300
            late.wall_millis -= 5000
            clock, producer = ((fast, fast_producer), (late, late_producer))[number % 2]
            positions.append((await producer.send(b"%d" % number)).position)
            times.append(clock.wall_millis)
    return positions, times


async def test_ranges_of_times_have_all_messages_though_publish_times_do_not_ascend(
    broker: Broker, client: Client
) -> None:
    positions, times = await publish_out_of_order(broker)
    options = read_options(broker.service_url, topic=TOPIC, admin_url=broker.web_service_url)
    for at in times:
        since = {index for index, time in enumerate(times) if time >= at}
        until = {index for index, time in enumerate(times) if time <= at}
        assert since <= {*covered(await plan(broker, client, startingTime=str(at)), positions)}
        assert until <= {*covered(await plan(broker, client, endingTime=str(at)), positions)}
        pruned = await plan_batch(client, options, Pruning(min_publish_millis=at))
        assert since <= {*covered(pruned, positions)}


async def test_slack_is_what_a_range_of_times_reads_more(broker: Broker, client: Client) -> None:
    positions, times = await publish_out_of_order(broker)
    at = times[20]
    some = {"startingTime": str(at), "endingTime": str(at), "publishTimeSlackMs": "5000"}
    read = covered(await plan(broker, client, **some), positions)
    assert {index for index, time in enumerate(times) if time == at} <= {*read}
    assert 0 not in read
    assert 39 not in read


async def test_filters_may_have_times_before_1970(broker: Broker, client: Client) -> None:
    positions = await publish(client, TOPIC, range(5))
    options = read_options(broker.service_url, topic=TOPIC, admin_url=broker.web_service_url)
    planned = await plan_batch(client, options, Pruning(min_publish_millis=-315_619_200_000))
    assert covered(planned, positions) == list(range(5))


async def test_a_start_past_the_end_is_refused_by_batches_and_streams(
    broker: Broker, client: Client
) -> None:
    last = (await publish(client, TOPIC, range(5)))[-1]
    end = Position(last.ledger_id, last.entry_id + 1)
    beyond = json.dumps({"plans": "99999:0"})
    expected = f"startingOffsets: {TOPIC}: 99999:0 is past the topic's end, {end}"
    with pytest.raises(ConfigurationError, match=expected):
        await plan(broker, client, startingOffsets=beyond)
    with pytest.raises(ConfigurationError, match=expected):
        await plan_batch(
            client, read_options(broker.service_url, topic=TOPIC, startingOffsets=beyond)
        )
    planner = planner_of(broker, client, startingOffsets=beyond)
    with pytest.raises(ConfigurationError, match=expected):
        await planner.initial_offset()
    await planner.close()
    assert await plan(broker, client, startingOffsets=json.dumps({"plans": str(end)})) == []
    with pytest.raises(
        ConfigurationError, match=f"startingTime: {TOPIC}: 2000 is after the endingTime 1000"
    ):
        await plan(broker, client, startingTime="2000", endingTime=json.dumps({"plans": 1000}))


async def test_topics_that_options_name_must_be_topics_of_the_read(
    broker: Broker, client: Client
) -> None:
    positions = await publish(client, TOPIC, range(5))
    misspelt = json.dumps({"palns": str(positions[0])})
    with pytest.raises(
        ConfigurationError, match=r"'palns' is not a topic .*did you mean '.*/plans'"
    ):
        await plan(broker, client, startingOffsets=misspelt)
    planner = planner_of(broker, client, startingOffsets=misspelt)
    with pytest.raises(ConfigurationError, match="'palns' is not a topic"):
        await planner.initial_offset()
    await planner.close()


async def test_pruning_leaves_out_topics_and_ledgers(broker: Broker, client: Client) -> None:
    positions = await publish(client, TOPIC, range(25))
    options = read_options(broker.service_url, topic=TOPIC, admin_url=broker.web_service_url)
    second = positions[10].ledger_id
    planned = await plan_batch(client, options, Pruning(min_ledger_id=second, max_ledger_id=second))
    assert covered(planned, positions) == list(range(10, 20))
    assert await plan_batch(client, options, Pruning(topics=frozenset({"other"}))) == []


async def test_a_start_that_was_deleted_is_an_error_or_a_warning(
    broker: Broker, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    positions = await publish(client, TOPIC, range(5))
    gone = json.dumps({TOPIC: f"{positions[0].ledger_id - 1}:3"})
    with pytest.raises(DataLossError, match=rf"{TOPIC}: entries from .*:3 on were deleted"):
        await plan(broker, client, startingOffsets=gone)
    planned = await plan(broker, client, startingOffsets=gone, failOnDataLoss="false")
    assert covered(planned, positions) == list(range(5))
    assert "entries are gone" in caplog.text


async def test_a_stream_goes_on_where_a_restarted_broker_left_out_an_empty_ledger(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stored: dict[str, Any] = {"data_dir": tmp_path, "config": BROKER_CONFIG}  # Any: keywords
    async with Broker(**stored) as broker, Client(broker.service_url) as one:
        await publish(one, TOPIC, [])
        planner = planner_of(broker, one)
        initial = await planner.initial_offset()
        await planner.close()
    async with Broker(**stored) as broker, Client(broker.service_url) as one:
        positions = await publish(one, TOPIC, range(3))
        assert positions[0].ledger_id > initial.positions[TOPIC].ledger_id
        planner = planner_of(broker, one)
        end = await planner.latest_offset(initial, max_entries=None, max_bytes=None)
        assert covered(await planner.plan(initial, end), positions) == [0, 1, 2]
        await planner.close()
    assert "had no entries when it was last read" in caplog.text


async def test_an_available_now_query_of_an_empty_topic_ends_before_its_first_entry(
    broker: Broker, client: Client
) -> None:
    await publish(client, TOPIC, [])
    planner = planner_of(broker, client)
    start = await planner.initial_offset()
    await planner.prepare_for_available_now()
    await publish(client, TOPIC, range(3))
    assert await planner.latest_offset(start, max_entries=None, max_bytes=None) == start
    await planner.close()


async def test_without_an_admin_url_a_named_start_that_was_deleted_is_an_error(
    broker: Broker, client: Client
) -> None:
    positions = await publish(client, TOPIC, range(25))
    gone = json.dumps({TOPIC: f"{positions[0].ledger_id - 1}:3"})
    strict, lenient, there = (
        read_options(broker.service_url, topic=TOPIC, startingOffsets=start, failOnDataLoss=fails)
        for start, fails in (
            (gone, "true"),
            (gone, "false"),
            (json.dumps({TOPIC: f"{positions[9]}"}), "true"),
        )
    )
    expected = f":3 on were deleted, the first one left is {positions[0]}"
    with pytest.raises(DataLossError, match=expected):
        await plan_batch(client, strict)
    assert covered(await plan_batch(client, lenient), positions) == list(range(25))
    assert covered(await plan_batch(client, there), positions) == list(range(9, 25))


async def test_without_an_admin_url_only_what_is_sure_to_be_lost_is_an_error(
    broker: Broker, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    old = await publish(client, TOPIC, range(5))
    options = read_options(broker.service_url, is_streaming=True, topic=TOPIC)
    planner = StreamPlanner(client, options)
    read = await planner.ends()
    # Its ledger is still there: nothing is lost, whatever ledger comes next.
    full = await publish(client, TOPIC, range(10))
    await planner.plan(read, await planner.ends())
    assert full[-1].ledger_id > old[-1].ledger_id
    assert "a ledger is gone" not in caplog.text
    await broker.service.topics.delete(TopicName.parse(TOPIC), force=True)
    new = await publish(client, TOPIC, range(3))
    # Nobody knows what its ledger had behind what was read.
    assert covered(await planner.plan(read, await planner.ends()), new) == [0, 1, 2]
    assert "a ledger is gone" in caplog.text
    # Here it is known: a batch that is replayed ended behind its start.
    begun = StreamOffset({TOPIC: old[2]})
    with pytest.raises(
        DataLossError, match=f"from {old[2]} on were deleted, the first .* {new[0]}"
    ):
        await planner.plan(begun, read)
    await planner.close()


async def test_micro_batches_follow_one_another_without_gaps(
    broker: Broker, client: Client
) -> None:
    positions = await publish(client, TOPIC, range(25))
    planner = planner_of(broker, client, startingOffsets="earliest", maxEntriesPerTrigger="7")
    offset, seen = await planner.initial_offset(), []
    while True:
        end = await planner.latest_offset(offset, max_entries=7, max_bytes=None)
        if end == offset:
            break
        seen.append(covered(await planner.plan(offset, end), positions))
        offset = end
    await planner.close()
    assert [index for batch in seen for index in batch] == list(range(25))
    assert max(map(len, seen)) == 7


async def test_a_replayed_batch_is_the_same(broker: Broker, client: Client) -> None:
    positions = await publish(client, TOPIC, range(15))
    planner = planner_of(broker, client, startingOffsets="earliest")
    start = await planner.initial_offset()
    end = await planner.latest_offset(start, max_entries=None, max_bytes=None)
    before = await planner.plan(start, end)
    await publish(client, TOPIC, range(15, 30))
    assert await planner.plan(start, end) == before
    assert covered(before, positions) == list(range(15))
    await planner.close()


async def test_available_now_ends_where_the_topic_ended(broker: Broker, client: Client) -> None:
    await publish(client, TOPIC, range(5))
    planner = planner_of(broker, client, startingOffsets="earliest")
    start = await planner.initial_offset()
    await planner.prepare_for_available_now()
    target = await planner.ends()
    await publish(client, TOPIC, range(5, 40))
    await publish(client, TOPIC + "-new", range(5))
    assert await planner.latest_offset(start, max_entries=None, max_bytes=None) == target
    assert await planner.latest_offset(target, max_entries=None, max_bytes=None) == target
    await planner.close()


async def test_a_new_partition_is_read_from_its_beginning(broker: Broker, client: Client) -> None:
    name = TopicName.parse(TOPIC + "-p")
    await broker.service.topics.partitioned.create(name, 1)
    planner = planner_of(broker, client, topic=str(name))
    start = await planner.initial_offset()
    await broker.service.topics.partitioned.grow(name, 2)
    positions = await publish(client, str(name.partition(1)), range(5))
    end = await planner.latest_offset(start, max_entries=None, max_bytes=None)
    assert covered(await planner.plan(start, end), positions) == list(range(5))
    await planner.close()


@pytest.mark.parametrize("knows_ledgers", [True, False])
async def test_a_topic_that_ends_before_what_was_read_is_a_loss(
    broker: Broker, client: Client, caplog: pytest.LogCaptureFixture, *, knows_ledgers: bool
) -> None:
    """Ledgers of a cluster that was created anew are numbered from the beginning again."""
    positions = await publish(client, TOPIC, range(25))
    read = StreamOffset({TOPIC: Position(positions[-1].ledger_id + 7, 10)})

    def planner_with(**options: str) -> StreamPlanner:
        given = {"topic": TOPIC} | options
        if knows_ledgers:
            given["admin_url"] = broker.web_service_url
        return StreamPlanner(client, read_options(broker.service_url, is_streaming=True, **given))

    planner = planner_with()
    end = await planner.latest_offset(read, max_entries=None, max_bytes=None)
    with pytest.raises(
        DataLossError, match=rf"{TOPIC}: {read.positions[TOPIC]} was .* created anew"
    ):
        await planner.plan(read, end)
    planner = planner_with(failOnDataLoss="false")
    assert covered(await planner.plan(read, end), positions) == list(range(25))
    assert "entries are gone" in caplog.text
    assert await planner.latest_offset(end, max_entries=None, max_bytes=None) == end


async def test_markers_behind_the_last_message_are_no_loss_where_ledgers_are_not_known(
    broker: Broker, client: Client
) -> None:
    """A stream was planned with `admin.url`, and goes on without."""
    positions = await publish(client, TOPIC, range(5))
    topic = await broker.service.topics.get_or_load(TopicName.parse(TOPIC), create_if_missing=False)
    assert isinstance(topic, PersistentTopic)
    marker = MessageMetadata(producer_name="b", sequence_id=0, publish_time=1, marker_type=10)
    await topic.ledger.append_and_wait(encode_entry(marker, b""))
    read = await planner_of(broker, client).ends()
    assert read.positions[TOPIC].entry_id == positions[-1].entry_id + 2
    planner = StreamPlanner(
        client, read_options(broker.service_url, is_streaming=True, topic=TOPIC)
    )
    assert await planner.latest_offset(read, max_entries=None, max_bytes=None) == read
    positions += await publish(client, TOPIC, [5])
    end = await planner.latest_offset(read, max_entries=None, max_bytes=None)
    assert covered(await planner.plan(read, end), positions) == [5]
    await planner.close()


async def test_a_micro_batch_whose_entries_are_gone_from_the_end_is_a_loss(
    broker: Broker, client: Client
) -> None:
    positions = await publish(client, TOPIC, range(5))
    ledger_id = positions[-1].ledger_id
    start, end = (StreamOffset({TOPIC: Position(ledger_id, each)}) for each in (3, 9))
    with pytest.raises(DataLossError, match=rf"{ledger_id}:9 was .* ends at {ledger_id}:5"):
        await planner_of(broker, client).plan(start, end)
    planner = planner_of(broker, client, failOnDataLoss="false")
    assert await planner.plan(start, end) == []
    after = await planner.latest_offset(end, max_entries=None, max_bytes=None)
    assert covered(await planner.plan(end, after), positions) == list(range(5))


async def test_a_topic_that_is_gone_is_a_loss(broker: Broker, client: Client) -> None:
    await publish(client, TOPIC, range(1))
    options = {"topics": f"{TOPIC},{TOPIC}-gone"}
    planner = StreamPlanner(client, read_options(broker.service_url, is_streaming=True, **options))
    start = StreamOffset({TOPIC: Position(0, 0), TOPIC + "-gone": Position(0, 0)})
    with pytest.raises(DataLossError, match="plans-gone: the topic was deleted"):
        await planner.plan(start, StreamOffset({TOPIC: Position(0, 0)}))
    await planner.close()


async def test_partitions_that_came_before_a_replay_of_the_first_batch_are_for_the_next(
    broker: Broker, client: Client
) -> None:
    name = TopicName.parse(TOPIC + "-grown")
    await broker.service.topics.partitioned.create(name, 2)
    first = await publish(client, str(name.partition(0)), range(3))
    options = {"topic": str(name), "startingOffsets": "earliest"}
    failed = planner_of(broker, client, **options)
    logged = await failed.latest_offset(
        await failed.initial_offset(), max_entries=None, max_bytes=None
    )
    await failed.close()
    await broker.service.topics.partitioned.grow(name, 3)
    added = await publish(client, str(name.partition(2)), range(4))
    planner = planner_of(broker, client, **options)
    again = await planner.plan(await planner.initial_offset(), logged)
    assert covered(again, first) == [0, 1, 2]
    end = await planner.latest_offset(logged, max_entries=None, max_bytes=None)
    assert covered(await planner.plan(logged, end), added) == [0, 1, 2, 3]
    # In any later batch it is a loss, though there is such a topic again.
    with pytest.raises(DataLossError, match="grown-partition-2: the topic was deleted"):
        await planner.plan(end, logged)
    await planner.close()


@pytest.mark.parametrize("has_admin_url", [True, False])
async def test_a_named_topic_that_was_deleted_is_a_loss_with_its_position(
    broker: Broker,
    client: Client,
    caplog: pytest.LogCaptureFixture,
    has_admin_url: bool,  # noqa: FBT001 - a parameter of pytest's
) -> None:
    kept, gone = TOPIC + "-kept", TOPIC + "-deleted"
    await publish(client, kept, range(1))
    position = (await publish(client, gone, range(1)))[0]
    options = {"topics": f"{kept},{gone}", "startingOffsets": "earliest"}
    options |= {"admin_url": broker.web_service_url} if has_admin_url else {}
    strict, lenient = (
        StreamPlanner(
            client,
            read_options(broker.service_url, is_streaming=True, failOnDataLoss=each, **options),
        )
        for each in ("true", "false")
    )
    start = await strict.ends()
    await broker.service.topics.delete(TopicName.parse(gone), force=True)
    more = await publish(client, kept, range(2))
    end = await strict.latest_offset(start, max_entries=None, max_bytes=None)
    assert set(end.positions) == {kept}
    expected = f"{gone}: the topic was deleted, {position.ledger_id}:1 was to be read next"
    with pytest.raises(DataLossError, match=expected):
        await strict.plan(start, end)
    # Deleted between the end and the plan.
    late = StreamOffset({**end.positions, gone: Position(position.ledger_id, 9)})
    with pytest.raises(DataLossError, match=expected):
        await strict.plan(start, late)
    assert covered(await lenient.plan(start, end), more) == [0, 1]
    assert expected in str([vars(each) for each in caplog.records])
    # A query that starts now, whose topic may just as well be misspelt.
    with pytest.raises(TopicNotFoundError, match=f"{gone}: there is no such topic"):
        await strict.initial_offset()
    assert set((await lenient.initial_offset()).positions) == {kept}
    await strict.close()
    await lenient.close()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"topic": TOPIC}, {"topic": f"{TOPIC}-other"}),
        ({"topic": TOPIC}, {"topicsPattern": f"{TOPIC}-o.*"}),
        ({"topics": f"{TOPIC},{TOPIC}-other"}, {"topic": f"{TOPIC}-other"}),
    ],
)
async def test_a_checkpoint_with_other_topics_than_the_options_is_no_loss_but_a_changed_option(
    broker: Broker,
    client: Client,
    before: dict[str, str],
    after: dict[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    position = (await publish(client, TOPIC, range(1)))[0]
    await publish(client, f"{TOPIC}-other", range(1))

    def planner(fails: str, given: dict[str, str]) -> StreamPlanner:
        options = {"startingOffsets": "earliest", "failOnDataLoss": fails, **given}
        return StreamPlanner(client, read_options(broker.service_url, is_streaming=True, **options))

    first, strict, lenient = (
        planner("true", before),
        planner("true", after),
        planner("false", after),
    )
    start = await first.ends()
    end = await strict.latest_offset(start, max_entries=None, max_bytes=None)
    with pytest.raises(ConfigurationError) as raised:
        await strict.plan(start, end)
    for text in (
        f"checkpoint: it has the topic {TOPIC} ({position.ledger_id}:1 was to be read next)",
        next(iter(after.values())),
        "the option was changed",
        "a new checkpointLocation",
    ):
        assert text in str(raised.value)
    await lenient.plan(start, end)
    assert "a topic is no longer read" in caplog.text
    for each in (first, strict, lenient):
        await each.close()


async def test_a_batch_of_topics_that_do_not_exist_names_them(
    broker: Broker, client: Client
) -> None:
    positions = await publish(client, TOPIC, range(3))
    strict, lenient = (
        read_options(broker.service_url, topics=f"{TOPIC},{TOPIC}-none", failOnDataLoss=each)
        for each in ("true", "false")
    )
    with pytest.raises(TopicNotFoundError, match="plans-none: there is no such topic"):
        await plan_batch(client, strict)
    assert covered(await plan_batch(client, lenient), positions) == [0, 1, 2]
    with pytest.raises(TopicNotFoundError, match="plans-none: there is no such topic"):
        await plan(broker, client, failOnDataLoss="false", topic=TOPIC + "-none")


async def test_a_subscription_of_the_user_s_follows_what_was_read(
    broker: Broker, client: Client
) -> None:
    positions = await publish(client, TOPIC, range(25))
    planner = planner_of(broker, client, predefinedSubscription="mine")
    await planner.commit(StreamOffset({TOPIC: positions[12]}))
    await planner.close()
    async with await client.subscribe(TOPIC, "mine") as consumer:
        assert (await consumer.receive()).data() == b"12"


FOLLOWED = {"startingOffsets": "earliest", "predefinedSubscription": "mine"}


@pytest.fixture
async def forgetful() -> AsyncIterator[Broker]:
    """A broker that deletes what all subscriptions have left behind."""
    config = {
        "managedLedgerMaxEntriesPerLedger": 10,
        "managedLedgerMinLedgerRolloverTimeMinutes": 0,
        "retentionCheckIntervalInSeconds": 1,
    }
    async with Broker(config=config) as broker:
        yield broker


async def ledgers_of(planner: StreamPlanner, first: int) -> None:
    """Wait until the topic begins with that ledger."""
    for _ in range(200):
        layout = await planner._catalog.layout(TOPIC)
        if layout.ledgers[0].ledger_id >= first:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(layout)


async def test_what_is_deleted_behind_a_subscription_that_follows_is_no_loss(
    forgetful: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(forgetful.service_url) as client:
        await (
            await client.subscribe(TOPIC, "mine", initial_position=InitialPosition.Earliest)
        ).close()
        await publish(client, TOPIC, range(10))
        planner = planner_of(forgetful, client, **FOLLOWED)
        read = await planner.ends()
        await planner.commit(read)
        left = await publish(client, TOPIC, range(10, 13))
        await ledgers_of(planner, left[0].ledger_id)
        assert read.positions[TOPIC].ledger_id < left[0].ledger_id
        assert covered(await planner.plan(read, await planner.ends()), left) == [0, 1, 2]
        assert not caplog.records
        await planner.close()


@pytest.mark.parametrize("moved_by", [3, 12])
async def test_what_a_subscription_was_moved_over_and_then_deleted_is_a_loss(
    forgetful: Broker, moved_by: int
) -> None:
    async with Client(forgetful.service_url) as client:
        await (
            await client.subscribe(TOPIC, "mine", initial_position=InitialPosition.Earliest)
        ).close()
        positions = await publish(client, TOPIC, range(25))
        strict = planner_of(forgetful, client, **FOLLOWED)
        read = StreamOffset({TOPIC: positions[8]})
        await strict.commit(read)
        async with await client.subscribe(TOPIC, "mine") as consumer:
            await consumer.acknowledge_cumulative(MessageId(*positions[8 + moved_by]))
        left = positions[10] if moved_by == 3 else positions[20]
        await ledgers_of(strict, left.ledger_id)
        at = positions[8 + moved_by]
        expected = (
            f"{TOPIC}: entries from {positions[8]} on were deleted, .* {left}; .*'mine' .* to {at}"
        )
        with pytest.raises(DataLossError, match=expected):
            await strict.plan(read, await strict.ends())
        lenient = planner_of(forgetful, client, **FOLLOWED, failOnDataLoss="false")
        planned = await lenient.plan(read, await lenient.ends())
        assert covered(planned, positions) == list(range(10 if moved_by == 3 else 20, 25))
        await strict.close()
        await lenient.close()


async def test_a_subscription_of_the_user_s_holds_what_is_unread_from_the_start(
    forgetful: Broker,
) -> None:
    async with Client(forgetful.service_url) as client:
        positions = await publish(client, TOPIC, range(3))
        last = positions[-1]
        for at, options in (
            (Position(last.ledger_id, -1), FOLLOWED),
            (last, {"predefinedSubscription": "other"}),
        ):
            planner = planner_of(forgetful, client, **options)
            await planner.initial_offset()
            follower = await planner._catalog.follower(TOPIC, options["predefinedSubscription"])
            assert follower is not None
            assert follower.acknowledged == at
            await planner.close()
        planner = planner_of(forgetful, client, **FOLLOWED)
        await publish(client, TOPIC + "-new", range(1))
        new = StreamOffset({TOPIC + "-new": Position(99, 0)})
        await planner.plan(StreamOffset({}), new)
        assert await planner._catalog.follower(TOPIC + "-new", "mine") is not None
        await planner.close()


async def test_a_subscription_that_is_not_there_has_kept_nothing(
    broker: Broker, client: Client
) -> None:
    gone = StreamOffset({TOPIC: Position(0, 7)})
    await publish(client, TOPIC, range(3))
    planner = planner_of(broker, client, **FOLLOWED)
    with pytest.raises(DataLossError, match="entries from 0:7 on were deleted"):
        await planner.plan(gone, await planner.ends())
    await planner.close()


async def test_a_stream_does_not_start_within_a_batch(broker: Broker, client: Client) -> None:
    positions = await publish(client, TOPIC, range(1))
    planner = planner_of(broker, client, startingOffsets=json.dumps({TOPIC: f"{positions[0]}:3"}))
    with pytest.raises(ConfigurationError, match=f"{TOPIC}: a stream starts at an entry"):
        await planner.initial_offset()
    await planner.close()
