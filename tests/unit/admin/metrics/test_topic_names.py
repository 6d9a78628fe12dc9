"""Every number of a topic and a subscription, after a load whose answer is computed here."""

from __future__ import annotations

import pytest

from pulsar_py.admin.metrics.topic_names import SUBSCRIPTION_NAMES, TOPIC_NAMES, WRITTEN_NAMES
from pulsar_py.proto.PulsarApi_pb2 import CommandAck
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.testing.clock import VirtualClock, run_virtual
from tests.unit.admin.metrics.metric_pages import Labels, by, page_text, parsed
from tests.unit.server.topics.rig import Rig, entry, send, subscribe_request
from tests.unit.settings.parts import broker

SIZES = (10, 200, 3000)
"""Bytes of the payloads, one each in turn; what an entry has in all is measured at `entry`."""

PUBLISHED, TAKEN, ACKNOWLEDGED = 30, 24, 9
WINDOW_SECONDS = 60


def entries() -> list[bytes]:
    return [entry(number, b"x" * SIZES[number % len(SIZES)]) for number in range(PUBLISHED)]


async def load(rig: Rig) -> None:
    """One topic gets messages, of which one subscription takes some and acknowledges fewer."""
    topic = await rig.topic("busy")
    await rig.topic('q"uiet\\')
    await topic.create_subscription("idle", starts_at_earliest=True)
    cnx = rig.cnx()
    request = subscribe_request(cnx, "work", SubscriptionType.SHARED, starts_at_earliest=True)
    consumer = await topic.subscribe(request)
    producer = await rig.producer(topic, cnx)
    for number, data in enumerate(entries()):
        send(producer, number, data)
    await rig.clock.sleep(0.01)
    consumer.flow(TAKEN)
    await rig.clock.sleep(0.01)
    ids = [each.message.message_id for each in cnx.received if each.HasField("message")]
    assert len(ids) == TAKEN
    ack = CommandAck(consumer_id=1, ack_type=CommandAck.Individual)
    ack.message_id.extend(ids[:ACKNOWLEDGED])
    consumer.acknowledge(ack)
    await rig.clock.sleep(WINDOW_SECONDS + 1)


@pytest.fixture(scope="module")
def metrics() -> dict[str, dict[Labels, float]]:
    async def run() -> dict[str, dict[Labels, float]]:
        async with broker(VirtualClock()) as rig:
            await load(rig)
            return parsed(await page_text(rig.broker))

    return run_virtual(run())


BUSY, QUIET = "persistent://public/default/busy", 'persistent://public/default/q\\"uiet\\\\'
SENT = sum(map(len, entries()))
OUT = sum(len(each) for each in entries()[:TAKEN])


def test_the_topics_numbers(metrics: dict[str, dict[Labels, float]]) -> None:
    found = {name: by(metrics, name, "topic") for name in (*TOPIC_NAMES, *WRITTEN_NAMES)}
    expected = {
        "pulsar_subscriptions_count": (2, 0),
        "pulsar_producers_count": (1, 0),
        "pulsar_consumers_count": (1, 0),
        "pulsar_rate_in": (PUBLISHED / WINDOW_SECONDS, 0),
        "pulsar_rate_out": (TAKEN / WINDOW_SECONDS, 0),
        "pulsar_throughput_in": (SENT / WINDOW_SECONDS, 0),
        "pulsar_throughput_out": (OUT / WINDOW_SECONDS, 0),
        "pulsar_in_bytes_total": (SENT, 0),
        "pulsar_in_messages_total": (PUBLISHED, 0),
        "pulsar_msg_backlog": (PUBLISHED + PUBLISHED - ACKNOWLEDGED, 0),
        "pulsar_storage_size": (SENT, 0),
        "pulsar_storage_logical_size": (SENT, 0),
        "pulsar_storage_backlog_size": (SENT, 0),
        "pulsar_storage_write_rate": (PUBLISHED / WINDOW_SECONDS, 0),
        "pulsar_publish_rate_limit_times": (0, 0),
        "pulsar_delayed_message_index_size_bytes": (0, 0),
        "pulsar_average_msg_size": (SENT / PUBLISHED, 0),
        "pulsar_storage_backlog_quota_limit": (-1, -1),
        "pulsar_storage_backlog_quota_limit_time": (-1, -1),
        "pulsar_storage_backlog_age_seconds": (-1, -1),
        "pulsar_storage_read_rate": (TAKEN / WINDOW_SECONDS, 0),
        "pulsar_storage_read_cache_misses_rate": (0, 0),
        "pulsar_entry_size_count": (PUBLISHED, 0),
        "pulsar_entry_size_sum": (SENT, 0),
        "pulsar_entry_size_le_128": (PUBLISHED // 3, 0),
        "pulsar_entry_size_le_512": (PUBLISHED // 3, 0),
        "pulsar_entry_size_le_4_kb": (PUBLISHED // 3, 0),
    }
    for kind in ("write_latency", "ledger_write_latency"):  # in virtual time nothing takes time
        expected[f"pulsar_storage_{kind}_count"] = (PUBLISHED, 0)
        expected[f"pulsar_storage_{kind}_le_0_5"] = (PUBLISHED, 0)
    for name in WRITTEN_NAMES:
        expected.setdefault(name, (0, 0))
    for name, (busy, quiet) in expected.items():
        assert found[name] == pytest.approx({BUSY: busy, QUIET: quiet}), name
    assert found.keys() == expected.keys()


def test_the_subscriptions_numbers(metrics: dict[str, dict[Labels, float]]) -> None:
    found = {name: by(metrics, name, "subscription") for name in SUBSCRIPTION_NAMES}
    expected = {
        "pulsar_out_bytes_total": (OUT, 0),
        "pulsar_out_messages_total": (TAKEN, 0),
        "pulsar_subscription_back_log": (PUBLISHED - ACKNOWLEDGED, PUBLISHED),
        "pulsar_subscription_back_log_no_delayed": (PUBLISHED - ACKNOWLEDGED, PUBLISHED),
        "pulsar_subscription_unacked_messages": (TAKEN - ACKNOWLEDGED, 0),
        "pulsar_subscription_msg_rate_out": (TAKEN / WINDOW_SECONDS, 0),
        "pulsar_subscription_msg_throughput_out": (OUT / WINDOW_SECONDS, 0),
        "pulsar_subscription_msg_ack_rate": (ACKNOWLEDGED / WINDOW_SECONDS, 0),
        "pulsar_subscription_consumers_count": (1, 0),
    }
    for name in found.keys() - expected.keys():
        if not name.endswith("_timestamp"):
            expected[name] = (0, 0)
    for name, (work, idle) in expected.items():
        assert found[name] == pytest.approx({"work": work, "idle": idle}), name
    for name in ("acked", "consumed_flow", "consumed", "mark_delete_advanced"):
        times = found[f"pulsar_subscription_last_{name}_timestamp"]
        assert times["work"] > 0
        assert times["idle"] == 0


@pytest.mark.metric("pulsar_broker_in_bytes_total", "pulsar_broker_out_bytes_total")
def test_the_brokers_bytes_are_told_apart_from_those_of_all_others(
    metrics: dict[str, dict[Labels, float]],
) -> None:
    found = by(metrics, "pulsar_broker_in_bytes_total", "system_topic")
    assert found == {"true": 0, "false": SENT}
    found = by(metrics, "pulsar_broker_out_bytes_total", "system_subscription")
    assert found == {"true": 0, "false": OUT}


def test_what_brokers_write_and_read_themselves_is_told_apart() -> None:
    async def run() -> dict[str, dict[Labels, float]]:
        async with broker(VirtualClock()) as rig:
            topic, cnx = await rig.topic("__change_events"), rig.cnx()
            request = subscribe_request(cnx, "__system_reader-1", starts_at_earliest=True)
            consumer = await topic.subscribe(request)
            producer = await rig.producer(topic, cnx)
            send(producer, 0, entry(0))
            consumer.flow(1)
            await rig.clock.sleep(0.01)
            return parsed(await page_text(rig.broker))

    metrics = run_virtual(run())
    size = len(entry(0))
    found = by(metrics, "pulsar_broker_in_bytes_total", "system_topic")
    assert found == {"true": size, "false": 0}
    found = by(metrics, "pulsar_broker_out_bytes_total", "system_subscription")
    assert found == {"true": size, "false": 0}


def test_the_brokers_sums_are_those_of_its_topics(
    metrics: dict[str, dict[Labels, float]],
) -> None:
    for name in ("rate_in", "throughput_out", "msg_backlog", "subscriptions_count", "storage_size"):
        total = sum(metrics[f"pulsar_{name}"].values())
        assert list(metrics[f"pulsar_broker_{name}"].values()) == pytest.approx([total])
    assert list(metrics["pulsar_broker_topics_count"].values()) == [2]
    assert by(metrics, "pulsar_topics_count", "namespace") == {"public/default": 2}


def test_labels_stand_in_pulsars_order(metrics: dict[str, dict[Labels, float]]) -> None:
    for name, labels in (
        ("pulsar_rate_in", ["cluster", "namespace", "topic"]),
        ("pulsar_out_bytes_total", ["cluster", "namespace", "topic", "subscription"]),
    ):
        assert {tuple(label for label, _ in key) for key in metrics[name]} == {tuple(labels)}
