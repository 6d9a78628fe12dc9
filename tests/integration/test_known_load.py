"""Numbers of statistics, internal statistics and metrics, after a load that is counted here.

Clients of the wire publish and consume in virtual time and write down what they sent and got. What
the broker has to say is added up of that alone; each field of an answer is expected or named.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pytest

from pulsar_py.admin.resources.topic_stats_json import iso_time
from pulsar_py.testing.network import run_simulated
from tests.counted_load import (
    EXCLUSIVE,
    FAILOVER,
    KEY_SHARED,
    PATH,
    SHARED,
    TOPIC,
    WINDOW,
    House,
    Json,
    Publisher,
    Reader,
    house,
)
from tests.unit.admin.metrics.metric_pages import Labels, by

SINGLE_SIZES: Final = (10, 200, 3000)
SINGLES, BATCHES, A_BATCH, CHUNKS, DELAYED = 30, 4, 5, 3, 2
"""Entries of each producer; messages in each batch."""

PUBLISHED_AT: Final = 1_700_000_000_000
"""What `stored_entry` writes into each message: the moment at which virtual time begins."""

TIMES_AND_PLACES: Final = frozenset(
    {"address", "connectedSince", "clientVersion", "ownerBroker", "topicCreationTimeStamp"}
)
"""What is known, but no number of the load."""


@dataclass
class Load:
    """What was done to one topic in the first window."""

    house: House
    publishers: dict[str, Publisher] = field(default_factory=dict)
    readers: dict[str, list[Reader]] = field(default_factory=dict)
    began_at: int = 0
    published_at: int = 0
    consumed_at: int = 0  # the first FLOW

    async def run(self) -> None:
        clock = self.house.broker.service.clock
        self.began_at = clock.wall_time_millis()
        await self.house.call("PUT", PATH)
        await self.house.call("PUT", PATH + "/subscription/idle", b'"earliest"')
        for name in ("singles", "batches", "chunks", "delayed"):
            self.publishers[name] = await self.house.publisher(name)
        for name, kind, count in (
            ("work", SHARED, 2),
            ("one", EXCLUSIVE, 1),
            ("fail", FAILOVER, 2),
            ("keys", KEY_SHARED, 2),
        ):
            self.readers[name] = [await self.house.reader(name, kind) for _ in range(count)]
        await clock.sleep(1)
        self.published_at = clock.wall_time_millis()
        self.publish()
        await clock.sleep(1)
        await self.consume()

    def publish(self) -> None:
        for number in range(SINGLES):
            body = b"x" * SINGLE_SIZES[number % len(SINGLE_SIZES)]
            self.publishers["singles"].send(body, partition_key=f"k{number % 7}")
        for _ in range(BATCHES):
            single = b"\x00\x00\x00\x04\x18\x02xx"  # its metadata: two bytes of payload
            self.publishers["batches"].send(
                single * A_BATCH, A_BATCH, num_messages_in_batch=A_BATCH, partition_key="k1"
            )
        for number in range(CHUNKS):
            self.publishers["chunks"].send(
                b"c" * 100,
                is_chunk=True,
                uuid="u",
                chunk_id=number,
                num_chunks_from_msg=CHUNKS,
                total_chunk_msg_size=100 * CHUNKS,
            )
        due = self.house.broker.service.clock.wall_time_millis() + 3_600_000
        for _ in range(DELAYED):
            self.publishers["delayed"].send(b"late", deliver_at_time=due)

    async def consume(self) -> None:
        clock = self.house.broker.service.clock
        self.consumed_at = clock.wall_time_millis()
        for readers in self.readers.values():
            for reader, permits in zip(readers, (25, 1000), strict=False):
                reader.flow(permits)
        await clock.sleep(1)
        first, second = self.readers["work"]
        first.ack(first.taken[:4])
        batches = [each for each in second.taken if each.messages > 1]
        second.ack(batches[:1])
        second.ack_part(batches[1], 2)
        second.give_back([each for each in second.taken if each.messages == 1][:3])
        self.readers["one"][0].flow(100)
        await clock.sleep(1)
        (one,) = self.readers["one"]
        one.ack_up_to(one.taken[9])
        for each in self.readers["keys"]:
            each.ack(each.taken)
        await clock.sleep(1)

    @property
    def entries(self) -> int:
        return sum(len(each.sizes) for each in self.publishers.values())

    @property
    def messages(self) -> int:
        return sum(each.messages for each in self.publishers.values())

    @property
    def size(self) -> int:
        return sum(sum(each.sizes) for each in self.publishers.values())

    @property
    def all_readers(self) -> list[Reader]:
        return [reader for readers in self.readers.values() for reader in readers]


ACKNOWLEDGED: Final = {"work": 4 + 1, "one": 10, "fail": 0, "idle": 0}
"""Entries that were acknowledged as a whole, by subscription; of `keys` all but the delayed ones."""
ZEROS: Final = dict.fromkeys(
    (
        "systemTopicBytesInCounter",
        "bytesOutInternalCounter",
        "publishRateLimitedTimes",
        "earliestMsgPublishTimeInBacklogs",
        "offloadedStorageSize",
        "lastOffloadLedgerId",
        "lastOffloadSuccessTimeStamp",
        "lastOffloadFailureTimeStamp",
        "ongoingTxnCount",
        "abortedTxnCount",
        "committedTxnCount",
        "waitingPublishers",
        "nonContiguousDeletedMessagesRangesSerializedSize",
    ),
    0,
)
OF_SUBSCRIPTION: Final = {
    **dict.fromkeys(
        (
            "msgRateExpired",
            "totalMsgExpired",
            "msgExpired",
            "lastExpireTimestamp",
            "msgInReplay",
            "earliestMsgPublishTimeInBacklog",
            "msgDropRate",
            "drainingHashesCount",
            "drainingHashesClearedTotal",
            "drainingHashesUnackedMessages",
            "nonContiguousDeletedMessagesRangesSerializedSize",
            "filterProcessedMsgCount",
            "filterAcceptedMsgCount",
            "filterRejectedMsgCount",
            "filterRescheduledMsgCount",
            "dispatchThrottledMsgEventsBySubscriptionLimit",
            "dispatchThrottledBytesEventsBySubscriptionLimit",
            "dispatchThrottledMsgEventsByTopicLimit",
            "dispatchThrottledBytesEventsByTopicLimit",
            "dispatchThrottledMsgEventsByBrokerLimit",
            "dispatchThrottledBytesEventsByBrokerLimit",
        ),
        0,
    ),
    "blockedSubscriptionOnUnackedMsgs": False,
    "isReplicated": False,
    "replicated": False,
    "isDurable": True,
    "durable": True,
    "allowOutOfOrderDelivery": False,
    "consumersAfterMarkDeletePosition": {},
    "subscriptionProperties": {},
}


def expected_publisher(publisher: Publisher) -> Json:
    size = sum(publisher.sizes)
    return {
        "accessMode": "Shared",
        "msgRateIn": publisher.messages / WINDOW,
        "msgThroughputIn": size / WINDOW,
        "averageMsgSize": size / publisher.messages,
        "chunkedMessageRate": CHUNKS / WINDOW if publisher.name == "chunks" else 0,
        "producerId": 1,
        "supportsPartialProducer": False,
        "producerName": publisher.name,
        "metadata": {},
    }


def expected_consumer(load: Load, reader: Reader, *, is_shared: bool) -> Json:
    return {
        "msgRateOut": reader.messages / WINDOW,
        "msgThroughputOut": reader.size / WINDOW,
        "bytesOutCounter": reader.size,
        "msgOutCounter": reader.messages,
        "msgRateRedeliver": reader.given_back / WINDOW,
        "messageAckRate": reader.acked / WINDOW,
        "chunkedMessageRate": sum(each.is_chunk for each in reader.taken) / WINDOW,
        "consumerName": reader.name,
        "availablePermits": reader.granted - reader.messages,
        "unackedMessages": (reader.messages - reader.acked - reader.given_back if is_shared else 0),
        "blockedConsumerOnUnackedMsgs": False,
        "drainingHashesCount": 0,
        "drainingHashesClearedTotal": 0,
        "drainingHashesUnackedMessages": 0,
        "metadata": {},
        "firstConsumedFlowTimestamp": load.consumed_at,
        "firstMessagesSentTimestamp": load.consumed_at if reader.taken else 0,
    }


CONSUMERS_OWN_WAY: Final = frozenset(
    {
        "avgMessagesPerEntry",  # a moving average
        "drainingHashes",
        "keyHashRanges",
        "keyHashRangeArrays",
        "lastAckedTimestamp",
        "lastAckedTime",
        "lastConsumedTimestamp",
        "lastConsumedTime",
        "lastConsumedFlowTimestamp",
    }
)
"""Fields of a consumer that other tests hold to their values."""


def expected_topic(load: Load) -> Json:
    out = sum(each.messages for each in load.all_readers)
    out_bytes = sum(each.size for each in load.all_readers)
    return {
        **ZEROS,
        "msgRateIn": load.messages / WINDOW,
        "msgThroughputIn": load.size / WINDOW,
        "msgRateOut": out / WINDOW,
        "msgThroughputOut": out_bytes / WINDOW,
        "bytesInCounter": load.size,
        "msgInCounter": load.messages,
        "bytesOutCounter": out_bytes,
        "msgOutCounter": out,
        "averageMsgSize": load.size / load.messages,
        "msgChunkPublished": True,
        "storageSize": load.size,
        "backlogSize": load.size,
        "backlogQuotaLimitSize": -1,
        "backlogQuotaLimitTime": -1,
        "oldestBacklogMessageAgeSeconds": -1,  # the open ledger has no age
        "replication": {},
        "deduplicationStatus": "Disabled",
        "nonContiguousDeletedMessagesRanges": 1,
        "compaction": {
            "lastCompactionRemovedEventCount": 0,
            "lastCompactionSucceedTimestamp": 0,
            "lastCompactionFailedTimestamp": 0,
            "lastCompactionDurationTimeInMills": 0,
        },
        "topicCreationTimeStamp": load.began_at,
        "lastPublishTimeStamp": load.published_at,
        "lastPublishTimestamp": load.published_at,
    }


def expected_subscription(load: Load, name: str) -> Json:
    readers = load.readers.get(name, [])
    delayed = DELAYED if name in {"work", "keys"} else 0
    acked = load.entries - DELAYED if name == "keys" else ACKNOWLEDGED[name]
    messages = sum(each.messages for each in readers)
    size = sum(each.size for each in readers)
    return {
        **OF_SUBSCRIPTION,
        "msgRateOut": messages / WINDOW,
        "msgThroughputOut": size / WINDOW,
        "bytesOutCounter": size,
        "msgOutCounter": messages,
        "msgRateRedeliver": sum(each.given_back for each in readers) / WINDOW,
        "messageAckRate": sum(each.acked for each in readers) / WINDOW,
        "chunkedMessageRate": sum(t.is_chunk for each in readers for t in each.taken) / WINDOW,
        "msgBacklog": load.entries - acked,
        "msgBacklogNoDelayed": load.entries - acked - delayed,
        "msgDelayed": delayed,
        "unackedMessages": (
            sum(each.messages - each.acked - each.given_back for each in readers)
            if name in {"work", "keys"}
            else 0
        ),
        "type": {
            "idle": "None",
            "work": "Shared",
            "one": "Exclusive",
            "fail": "Failover",
            "keys": "Key_Shared",
        }[name],
        "nonContiguousDeletedMessagesRanges": 1 if name == "work" else 0,
    }


SUBSCRIPTIONS_OWN_WAY: Final = frozenset(
    {
        "consumers",
        "standstill",
        "backlogSize",  # an estimate, see below
        "activeConsumerName",
        "keySharedMode",
        "delayedMessageIndexSizeInBytes",
        "lastConsumedFlowTimestamp",
        "lastConsumedTimestamp",
        "lastAckedTimestamp",
        "lastMarkDeleteAdvancedTimestamp",
    }
)


def assert_is(found: Json, expected: Json, *others: str) -> None:
    """Each field is as expected, or one of the others."""
    for name, value in expected.items():
        assert found.get(name) == (value if isinstance(value, list) else pytest.approx(value)), name
    assert found.keys() - expected.keys() <= {*others, *TIMES_AND_PLACES}, found.keys()


@dataclass
class Answers:
    """What was answered when the first window had ended."""

    load: Load
    stats: Json
    internal: Json
    metrics: dict[str, dict[Labels, float]]


@pytest.fixture(scope="module")
def answers() -> Answers:
    async def run() -> Answers:
        config = {
            "exposeConsumerLevelMetricsInPrometheus": True,
            "exposeProducerLevelMetricsInPrometheus": True,
        }
        async with house(**config) as found:
            load = Load(found)
            await load.run()
            clock = found.broker.service.clock
            await clock.sleep(WINDOW - (clock.wall_time_millis() - load.began_at) / 1000 + 0.5)
            stats = await found.call("GET", PATH + "/stats?getEarliestTimeInBacklog=false")
            internal = await found.call("GET", PATH + "/internalStats")
            return Answers(load, stats, internal, await found.metrics())

    return run_simulated(run())


def test_the_topic(answers: Answers) -> None:
    index_bytes = sum(
        each["delayedMessageIndexSizeInBytes"] for each in answers.stats["subscriptions"].values()
    )
    assert index_bytes > 0
    expected = {**expected_topic(answers.load), "delayedMessageIndexSizeInBytes": index_bytes}
    assert_is(answers.stats, expected, "publishers", "subscriptions")


def test_the_publishers(answers: Answers) -> None:
    found = {each["producerName"]: each for each in answers.stats["publishers"]}
    assert found.keys() == answers.load.publishers.keys()
    for name, publisher in answers.load.publishers.items():
        assert_is(found[name], expected_publisher(publisher))


def test_the_subscriptions(answers: Answers) -> None:
    load, found = answers.load, answers.stats["subscriptions"]
    assert found.keys() == {*load.readers, "idle"}
    an_entry = load.size / load.entries
    for name, stats in found.items():
        expected = expected_subscription(load, name)
        assert_is(stats, expected, *SUBSCRIPTIONS_OWN_WAY)
        # What is acknowledged beyond a hole has its bytes still.
        waiting = expected["msgBacklog"] + expected["nonContiguousDeletedMessagesRanges"]
        assert stats["backlogSize"] == pytest.approx(waiting * an_entry, abs=waiting)


def test_the_consumers(answers: Answers) -> None:
    load = answers.load
    for name, readers in load.readers.items():
        found = answers.stats["subscriptions"][name]["consumers"]
        is_shared = name in {"work", "keys"}
        for reader, stats in zip(readers, found, strict=True):
            expected = expected_consumer(load, reader, is_shared=is_shared)
            assert_is(stats, expected, *CONSUMERS_OWN_WAY)


def test_all_that_may_be_sent_was_sent(answers: Answers) -> None:
    """Else the numbers above would be right of a broker that sends nothing."""
    load = answers.load
    given_back = sum(each.given_back for each in load.all_readers)
    totals = {name: sum(each.messages for each in found) for name, found in load.readers.items()}
    assert given_back == 3
    assert totals == {
        "work": load.messages - DELAYED + given_back,
        "one": load.messages,
        "fail": 25,
        "keys": load.messages - DELAYED,
    }


MARKS: Final = {"idle": -1, "work": 3, "one": 9, "fail": -1}
"""Of `work` the batch beyond a hole is acknowledged; of `keys` the delayed entries come last."""


def expected_internal(load: Load) -> Json:
    return {
        "entriesAddedCounter": load.entries,
        "numberOfEntries": load.entries,
        "totalSize": load.size,
        "currentLedgerEntries": load.entries,
        "currentLedgerSize": load.size,
        "lastLedgerCreatedTimestamp": iso_time(load.began_at),
        "waitingCursorsCount": len(("work", "one", "keys")),  # `fail` has no permits
        "pendingAddEntriesCount": 0,
        "lastConfirmedEntry": f"1:{load.entries - 1}",
        "state": "LedgerOpened",
        # The open ledger is counted in the fields above alone, as in Apache Pulsar.
        "ledgers": [
            {"ledgerId": 1, "entries": 0, "size": 0, "offloaded": False, "underReplicated": False}
        ],
        "schemaLedgers": [],
        "compactedLedger": {
            "ledgerId": -1,
            "entries": -1,
            "size": -1,
            "offloaded": False,
            "underReplicated": False,
        },
        "properties": {},
    }


def expected_cursor(load: Load, name: str) -> Json:
    acked = load.entries - DELAYED if name == "keys" else ACKNOWLEDGED[name]
    mark = MARKS.get(name, load.entries - DELAYED - 1)
    is_waiting = name in {"work", "one", "keys"}
    read = {"idle": 0, "fail": 25}.get(name, load.entries)
    hole = f"(1:{SINGLES - 1}..1:{SINGLES}]" if name == "work" else ""
    return {
        "markDeletePosition": f"1:{mark}",
        "readPosition": f"1:{read}",
        "waitingReadOp": is_waiting,
        "pendingReadOps": 0,
        "messagesConsumedCounter": acked,
        "individuallyDeletedMessages": f"[{hole}]",
        "totalNonContiguousDeletedMessagesRange": 1 if hole else 0,
        "state": "Open" if acked else "NoLedger",
        "active": name != "idle",
        # With the read position, as in Apache Pulsar.
        "numberOfEntriesSinceFirstNotAckedMessage": read - mark,
        "subscriptionHavePendingRead": is_waiting,
        "subscriptionHavePendingReplayRead": False,
        "properties": {},
    }


def test_the_internal_statistics(answers: Answers) -> None:
    load, found = answers.load, answers.internal
    assert_is(found, expected_internal(load), "cursors")
    assert found["cursors"].keys() == {*load.readers, "idle"}
    cursor_ledgers = set()
    for name, cursor in found["cursors"].items():
        expected = expected_cursor(load, name)
        storing = ("cursorLedger", "cursorLedgerLastEntry", "lastLedgerSwitchTimestamp")
        assert_is(cursor, expected, *storing)
        if expected["state"] == "NoLedger":
            assert [cursor[each] for each in storing] == [-1, -1, iso_time(0)]
        else:
            cursor_ledgers.add(cursor["cursorLedger"])
            assert cursor["cursorLedgerLastEntry"] == 0  # all was acknowledged in one moment
            assert iso_time(load.consumed_at) < cursor["lastLedgerSwitchTimestamp"]
    assert len(cursor_ledgers) == len(("work", "one", "keys"))


OF_TOPIC: Final = {
    "pulsar_rate_in": "msgRateIn",
    "pulsar_rate_out": "msgRateOut",
    "pulsar_throughput_in": "msgThroughputIn",
    "pulsar_throughput_out": "msgThroughputOut",
    "pulsar_in_bytes_total": "bytesInCounter",
    "pulsar_in_messages_total": "msgInCounter",
    "pulsar_average_msg_size": "averageMsgSize",
    "pulsar_storage_size": "storageSize",
    "pulsar_storage_logical_size": "storageSize",
    "pulsar_storage_backlog_size": "backlogSize",
    "pulsar_storage_backlog_quota_limit": "backlogQuotaLimitSize",
    "pulsar_storage_backlog_quota_limit_time": "backlogQuotaLimitTime",
    "pulsar_storage_backlog_age_seconds": "oldestBacklogMessageAgeSeconds",
    "pulsar_publish_rate_limit_times": "publishRateLimitedTimes",
}
OF_A_SUBSCRIPTION: Final = {
    "pulsar_out_bytes_total": "bytesOutCounter",
    "pulsar_out_messages_total": "msgOutCounter",
    "pulsar_subscription_back_log": "msgBacklog",
    "pulsar_subscription_back_log_no_delayed": "msgBacklogNoDelayed",
    "pulsar_subscription_delayed": "msgDelayed",
    "pulsar_subscription_in_replay": "msgInReplay",
    "pulsar_subscription_msg_rate_redeliver": "msgRateRedeliver",
    "pulsar_subscription_unacked_messages": "unackedMessages",
    "pulsar_subscription_msg_rate_out": "msgRateOut",
    "pulsar_subscription_msg_throughput_out": "msgThroughputOut",
    "pulsar_subscription_msg_ack_rate": "messageAckRate",
    "pulsar_subscription_msg_rate_expired": "msgRateExpired",
    "pulsar_subscription_total_msg_expired": "totalMsgExpired",
    "pulsar_subscription_blocked_on_unacked_messages": "blockedSubscriptionOnUnackedMsgs",
    "pulsar_subscription_filter_processed_msg_count": "filterProcessedMsgCount",
}
ZERO_HERE: Final = frozenset(
    {
        "pulsar_publish_rate_limit_times",
        "pulsar_storage_backlog_age_seconds",
        "pulsar_storage_backlog_quota_limit",
        "pulsar_storage_backlog_quota_limit_time",
        "pulsar_subscription_blocked_on_unacked_messages",
        "pulsar_subscription_filter_processed_msg_count",
        "pulsar_subscription_in_replay",
        "pulsar_subscription_msg_rate_expired",
        "pulsar_subscription_total_msg_expired",
    }
)
"""Metrics that other loads give a value."""
OF_A_CONSUMER: Final = {
    "pulsar_consumer_msg_rate_redeliver": "msgRateRedeliver",
    "pulsar_consumer_unacked_messages": "unackedMessages",
    "pulsar_consumer_blocked_on_unacked_messages": "blockedConsumerOnUnackedMsgs",
    "pulsar_consumer_msg_rate_out": "msgRateOut",
    "pulsar_consumer_msg_throughput_out": "msgThroughputOut",
    "pulsar_consumer_msg_ack_rate": "messageAckRate",
    "pulsar_consumer_available_permits": "availablePermits",
}
OF_A_PRODUCER: Final = {
    "pulsar_producer_msg_rate_in": "msgRateIn",
    "pulsar_producer_msg_throughput_in": "msgThroughputIn",
    "pulsar_producer_msg_average_Size": "averageMsgSize",
}


@pytest.mark.metric(
    *(OF_TOPIC.keys() - ZERO_HERE),
    *(OF_A_SUBSCRIPTION.keys() - ZERO_HERE),
    *OF_A_PRODUCER,
    "pulsar_delayed_message_index_size_bytes",
    "pulsar_storage_write_rate",
    "pulsar_subscription_consumers_count",
    "pulsar_subscription_delayed_message_index_size_bytes",
)
def test_the_lines_for_prometheus(answers: Answers) -> None:
    load, metrics = answers.load, answers.metrics
    topic = expected_topic(load)
    for name, field_name in OF_TOPIC.items():
        assert list(metrics[name].values()) == [pytest.approx(topic[field_name])], name
    assert list(metrics["pulsar_storage_write_rate"].values()) == [load.entries / WINDOW]
    assert list(metrics["pulsar_producers_count"].values()) == [len(load.publishers)]
    assert list(metrics["pulsar_consumers_count"].values()) == [len(load.all_readers)]
    assert list(metrics["pulsar_subscriptions_count"].values()) == [len(load.readers) + 1]
    for name, field_name in OF_A_SUBSCRIPTION.items():
        assert by(metrics, name, "subscription") == {
            each: pytest.approx(float(expected_subscription(load, each)[field_name]))
            for each in (*load.readers, "idle")
        }, name
    counts = by(metrics, "pulsar_subscription_consumers_count", "subscription")
    assert counts == {"idle": 0, **{name: len(each) for name, each in load.readers.items()}}
    index = {
        name: each["delayedMessageIndexSizeInBytes"]
        for name, each in answers.stats["subscriptions"].items()
    }
    # Two entries that wait, whose neighbours in the ledger they are.
    assert index == {"idle": 0, "one": 0, "fail": 0, "work": index["keys"], "keys": index["keys"]}
    assert DELAYED * 8 <= index["keys"] <= DELAYED * 300
    name = "delayed_message_index_size_bytes"
    assert by(metrics, f"pulsar_subscription_{name}", "subscription") == index
    assert list(metrics[f"pulsar_{name}"].values()) == [2 * index["keys"]]
    for name, field_name in OF_A_PRODUCER.items():
        assert by(metrics, name, "producer_name") == {
            each: pytest.approx(expected_publisher(publisher)[field_name])
            for each, publisher in load.publishers.items()
        }, name


@pytest.mark.metric(*(OF_A_CONSUMER.keys() - {"pulsar_consumer_blocked_on_unacked_messages"}))
def test_the_consumers_lines_for_prometheus() -> None:
    async def run() -> None:
        async with house(exposeConsumerLevelMetricsInPrometheus=True) as found:
            load = Load(found)
            load.began_at = load.consumed_at = found.broker.service.clock.wall_time_millis()
            publisher = await found.publisher("p")
            reader = await found.reader("s", SHARED)
            for _ in range(10):
                publisher.send(b"x" * 100)
            reader.flow(13)
            await found.broker.service.clock.sleep(1)
            reader.ack(reader.taken[:3])
            reader.give_back(reader.taken[5:6])
            await found.broker.service.clock.sleep(WINDOW)
            expected = expected_consumer(load, reader, is_shared=True)
            metrics = await found.metrics()
            for name, field_name in OF_A_CONSUMER.items():
                value = float(expected[field_name])
                assert list(metrics[name].values()) == [pytest.approx(value)], name

    run_simulated(run())


def test_rates_are_those_of_the_last_window_and_counts_of_all() -> None:
    async def run() -> None:
        async with house() as found:
            clock = found.broker.service.clock
            publisher = await found.publisher("p")
            reader = await found.reader("s", EXCLUSIVE)
            reader.flow(1000)
            publisher.send(b"a" * 1000)
            await clock.sleep(WINDOW + 1)
            publisher.rates()
            before = reader.size
            for _ in range(6):
                publisher.send(b"b" * 10)
            await clock.sleep(WINDOW)
            stats = await found.call("GET", PATH + "/stats")
            messages_rate, bytes_rate = publisher.rates()
            assert messages_rate == pytest.approx(6 / WINDOW)
            assert stats["msgRateIn"] == pytest.approx(messages_rate)
            assert stats["msgThroughputIn"] == pytest.approx(bytes_rate)
            assert stats["averageMsgSize"] == pytest.approx(bytes_rate / messages_rate)
            assert stats["msgThroughputOut"] == pytest.approx((reader.size - before) / WINDOW)
            assert (stats["msgInCounter"], stats["msgOutCounter"]) == (7, 7)
            assert stats["bytesInCounter"] == stats["bytesOutCounter"] == sum(publisher.sizes)
            await reader.client.close()
            await publisher.client.close()
            await clock.sleep(1)
            stats = await found.call("GET", PATH + "/stats")
            assert (stats["msgInCounter"], stats["msgOutCounter"]) == (7, 7), "clients have left"
            assert stats["publishers"] == stats["subscriptions"]["s"]["consumers"] == []

    run_simulated(run())


@pytest.mark.metric(
    "pulsar_storage_backlog_age_seconds",
    "pulsar_subscription_last_expire_timestamp",
    "pulsar_subscription_msg_rate_expired",
    "pulsar_subscription_total_msg_expired",
)
def test_ends_of_messages() -> None:
    """Expired ones, the age of the oldest, and what limits held."""

    async def run() -> None:
        async with house(preciseTimeBasedBacklogQuotaCheck=True) as found:
            clock = found.broker.service.clock
            await found.call("PUT", PATH)
            await found.call("PUT", PATH + "/subscription/s", b'"earliest"')
            publisher = await found.publisher("p")
            for _ in range(10):
                publisher.send(b"old")
            await clock.sleep(2 * WINDOW)
            stats = await found.call("GET", PATH + "/stats?getEarliestTimeInBacklog=true")
            # `stored_entry` says when its messages were published: at the beginning.
            now = clock.wall_time_millis()
            assert stats["oldestBacklogMessageAgeSeconds"] == (now - PUBLISHED_AT) // 1000
            assert stats["oldestBacklogMessageSubscriptionName"] == "s"
            assert stats["earliestMsgPublishTimeInBacklogs"] == PUBLISHED_AT
            metrics = await found.metrics()
            ages = list(metrics["pulsar_storage_backlog_age_seconds"].values())
            assert ages == [(now - PUBLISHED_AT) // 1000]
            assert stats["subscriptions"]["s"]["earliestMsgPublishTimeInBacklog"] == PUBLISHED_AT
            await found.call("POST", PATH + "/subscription/s/expireMessages/60")
            await clock.sleep(WINDOW)
            stats = await found.call("GET", PATH + "/stats?getEarliestTimeInBacklog=true")
            subscription = stats["subscriptions"]["s"]
            assert subscription["msgBacklog"] == subscription["backlogSize"] == 0
            assert subscription["totalMsgExpired"] == 10
            assert subscription["msgRateExpired"] == pytest.approx(10 / WINDOW)
            assert subscription["lastExpireTimestamp"] == now
            metrics = await found.metrics()
            for name, value in (
                ("last_expire_timestamp", now),
                ("msg_rate_expired", 10 / WINDOW),
                ("total_msg_expired", 10),
            ):
                lines = metrics[f"pulsar_subscription_{name}"].values()
                assert list(lines) == [pytest.approx(value)], name
            assert stats["oldestBacklogMessageAgeSeconds"] == -1
            assert stats["earliestMsgPublishTimeInBacklogs"] == 0

    run_simulated(run())


def test_what_limits_held_is_counted() -> None:
    async def run() -> None:
        async with house() as found:
            clock = found.broker.service.clock
            await found.call("PUT", PATH)
            limit = b'{"dispatchThrottlingRateInMsg": 10, "ratePeriodInSecond": 1}'
            await found.call("POST", PATH + "/dispatchRate", limit)
            publisher, reader = await found.publisher("p"), await found.reader("s", SHARED)
            for _ in range(30):
                publisher.send(b"m")
            reader.flow(1000)
            await clock.sleep(5)
            assert reader.messages == 30
            stats = await found.call("GET", PATH + "/stats")
            subscription = stats["subscriptions"]["s"]
            assert subscription["dispatchThrottledMsgEventsByTopicLimit"] > 0
            for limit_name in (
                "BytesEventsByTopic",
                "MsgEventsBySubscription",
                "MsgEventsByBroker",
            ):
                assert subscription[f"dispatchThrottled{limit_name}Limit"] == 0
            metrics = await found.metrics()
            assert by(metrics, "pulsar_subscription_dispatch_throttled_msg_events", "reason") == {
                "topic": subscription["dispatchThrottledMsgEventsByTopicLimit"],
                "subscription": 0,
                "broker": 0,
            }

    run_simulated(run())


@pytest.mark.metric("pulsar_subscription_msg_drop_rate")
def test_topics_that_keep_nothing() -> None:
    async def run() -> None:
        topic = TOPIC.replace("persistent", "non-persistent")
        path = PATH.replace("persistent", "non-persistent")
        async with house() as found:
            clock = found.broker.service.clock
            publisher = await found.publisher("p", topic)
            reader = await found.reader("s", SHARED, topic)
            reader.flow(4)
            await clock.sleep(1)
            for _ in range(10):
                publisher.send(b"x" * 50)
                await clock.sleep(0.1)
            await clock.sleep(WINDOW)
            stats = await found.call("GET", path + "/stats")
            size = sum(publisher.sizes)
            assert (stats["msgInCounter"], stats["bytesInCounter"]) == (10, size)
            assert (stats["msgOutCounter"], stats["bytesOutCounter"]) == (4, reader.size)
            assert stats["msgRateIn"] == pytest.approx(10 / WINDOW)
            assert stats["subscriptions"]["s"]["msgDropRate"] == pytest.approx(6 / WINDOW)
            assert stats["msgDropRate"] == pytest.approx(6 / WINDOW)
            rates = (await found.metrics())["pulsar_subscription_msg_drop_rate"].values()
            assert list(rates) == [pytest.approx(6 / WINDOW)]
            assert stats["storageSize"] == stats["backlogSize"] == 0
            (consumer,) = stats["subscriptions"]["s"]["consumers"]
            assert (consumer["availablePermits"], consumer["msgOutCounter"]) == (0, 4)

    run_simulated(run())


def test_partitions_are_added_up() -> None:
    async def run() -> None:
        async with house() as found:
            clock = found.broker.service.clock
            await found.call("PUT", PATH + "/partitions", b"3")
            publishers, readers = [], []
            for index in range(3):
                part = f"{TOPIC}-partition-{index}"
                publishers.append(await found.publisher("p", part))
                readers.append(await found.reader("s", SHARED, part, "r"))
                for number in range(10 * (index + 1)):
                    publishers[index].send(b"x" * (number + 100 * index))
                readers[index].flow(5)
            await clock.sleep(1)
            for reader in readers:
                reader.ack(reader.taken[:2])
            await clock.sleep(WINDOW)
            stats = await found.call("GET", PATH + "/partitioned-stats")
            messages = sum(each.messages for each in publishers)
            size = sum(sum(each.sizes) for each in publishers)
            out, out_bytes = (
                sum(each.messages for each in readers),
                sum(each.size for each in readers),
            )
            assert stats["metadata"]["partitions"] == len(stats["partitions"]) == 3
            assert (stats["msgInCounter"], stats["bytesInCounter"]) == (messages, size)
            assert (stats["msgOutCounter"], stats["bytesOutCounter"]) == (out, out_bytes)
            assert stats["msgRateIn"] == pytest.approx(messages / WINDOW)
            assert stats["msgThroughputIn"] == pytest.approx(size / WINDOW)
            assert stats["averageMsgSize"] == pytest.approx(size / messages)
            assert stats["storageSize"] == size
            left = [sum(each.sizes) * (1 - 2 / each.messages) for each in publishers]
            assert stats["backlogSize"] == pytest.approx(sum(left), abs=len(left))
            subscription = stats["subscriptions"]["s"]
            assert subscription["msgBacklog"] == messages - 3 * 2
            assert subscription["unackedMessages"] == out - 3 * 2
            (publisher,) = stats["publishers"]
            assert publisher["averageMsgSize"] == pytest.approx(size / messages)
            assert publisher["producerId"] == 1
            (consumer,) = subscription["consumers"]
            assert consumer["availablePermits"] == 0
            assert consumer["msgOutCounter"] == out
            inner = await found.call("GET", PATH + "/partitioned-internalStats")
            added = [each["entriesAddedCounter"] for each in inner["partitions"].values()]
            assert added == [10, 20, 30]

    run_simulated(run())
