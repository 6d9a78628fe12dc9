"""Which lines there are, by the settings."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.admin.metrics.topic_names import COMPACTION_NAMES
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.testing.clock import VirtualClock, run_virtual
from tests.unit.admin.metrics.metric_pages import Labels, by, page_text, parsed
from tests.unit.admin.metrics.test_topic_names import ACKNOWLEDGED, OUT, PUBLISHED, TAKEN, load
from tests.unit.server.topics.rig import entry, name_of, send, subscribe_request
from tests.unit.settings.parts import broker


def metrics_with(**settings: Any) -> dict[str, dict[Labels, float]]:  # Any: of settings
    async def run() -> dict[str, dict[Labels, float]]:
        async with broker(VirtualClock(), **settings) as rig:
            await load(rig)
            await rig.broker.topics.partitioned.create(name_of("many"), 4)
            await rig.topic("many-partition-3")
            return parsed(await page_text(rig.broker))

    return run_virtual(run())


@pytest.mark.setting("exposeTopicLevelMetricsInPrometheus")
def test_namespaces_alone() -> None:
    metrics = metrics_with(exposeTopicLevelMetricsInPrometheus=False)
    place = (("cluster", "standalone"), ("namespace", "public/default"))
    assert metrics["pulsar_in_messages_total"] == {place: PUBLISHED}
    assert metrics["pulsar_out_bytes_total"] == {place: OUT}
    assert metrics["pulsar_entry_size_count"] == {place: PUBLISHED}
    backlog = PUBLISHED + PUBLISHED - ACKNOWLEDGED
    assert metrics["pulsar_msg_backlog"] == {(*place, ("remote_cluster", "local")): backlog}
    assert not [name for name in metrics if name.startswith("pulsar_subscription_")]
    assert "pulsar_average_msg_size" not in metrics


@pytest.mark.setting("exposeConsumerLevelMetricsInPrometheus")
@pytest.mark.setting("exposeProducerLevelMetricsInPrometheus")
def test_consumers_and_producers() -> None:
    metrics = metrics_with(
        exposeConsumerLevelMetricsInPrometheus=True, exposeProducerLevelMetricsInPrometheus=True
    )
    unacked = by(metrics, "pulsar_consumer_unacked_messages", "subscription", "consumer_id")
    assert unacked == {"work/1": TAKEN - ACKNOWLEDGED}
    rate = by(metrics, "pulsar_producer_msg_rate_in", "producer_name")
    assert rate == pytest.approx({"p": PUBLISHED / 60})
    plain = metrics_with()
    assert not [each for each in plain if each.startswith(("pulsar_consumer_", "pulsar_producer_"))]


def test_a_topic_that_was_compacted_has_lines_of_it() -> None:
    async def run() -> dict[str, dict[Labels, float]]:
        async with broker(VirtualClock()) as rig:
            await load(rig)
            topic = await rig.topic("keyed")
            producer = await rig.producer(topic, rig.cnx())
            for number in range(5):
                send(producer, number, entry(partition_key="a"))
            await rig.clock.sleep(0.01)
            assert topic.compaction is not None
            topic.compaction.begin()
            await topic.compaction.finished()
            return parsed(await page_text(rig.broker))

    metrics = run_virtual(run())
    found = {name: by(metrics, name, "topic") for name in COMPACTION_NAMES[:3]}
    keyed = "persistent://public/default/keyed"
    assert found == dict(zip(COMPACTION_NAMES, ({keyed: 4}, {keyed: 1}, {keyed: 0}), strict=False))


def test_consumers_that_labels_do_not_tell_apart_have_one_line() -> None:
    async def run() -> dict[str, dict[Labels, float]]:
        async with broker(VirtualClock(), exposeConsumerLevelMetricsInPrometheus=True) as rig:
            topic = await rig.topic("shared")
            for permits in (3, 4):
                request = subscribe_request(
                    rig.cnx(), "work", SubscriptionType.SHARED, consumer_name="twin"
                )
                (await topic.subscribe(request)).flow(permits)
            return parsed(await page_text(rig.broker))

    metrics = run_virtual(run())
    permits = by(metrics, "pulsar_consumer_available_permits", "consumer_name", "consumer_id")
    assert permits == {"twin/1": 7}
    blocked = metrics["pulsar_consumer_blocked_on_unacked_messages"]
    assert list(blocked.values()) == [0]


@pytest.mark.setting("splitTopicAndPartitionLabelInPrometheus")
def test_partitions_have_a_label() -> None:
    metrics = metrics_with(splitTopicAndPartitionLabelInPrometheus=True)
    found = by(metrics, "pulsar_rate_in", "topic", "partition")
    assert "persistent://public/default/many/3" in found
    assert "persistent://public/default/busy/-1" in found


@pytest.mark.setting("statsUpdateFrequencyInSecs")
def test_rates_have_the_window_of_the_setting() -> None:
    metrics = metrics_with(statsUpdateFrequencyInSecs=600)
    assert set(metrics["pulsar_rate_in"].values()) == {0}
