"""Ranges and targets as options of the connector."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pulsar_py.pipeline.settings.topics import (
    Cluster,
    Guarantee,
    TopicRange,
    TopicTarget,
    topic_option,
)

CLUSTER = Cluster(service_url="pulsar://a", admin_url="http://a", options={"x": "y"})


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("t", ("topic", "t")),
        ("a,b", ("topics", "a,b")),
        ("pattern:public/default/a.*", ("topicsPattern", "public/default/a.*")),
    ],
)
def test_topics(text: str, option: tuple[str, str]) -> None:
    assert topic_option(text) == option


def test_a_key_tells_batches_of_one_name_apart() -> None:
    one = TopicRange(cluster=CLUSTER, topic="t", starting_millis=5)
    key = one.key("n")
    assert key is not None
    assert key.startswith("n-")
    same = replace(one, topic="persistent://public/default/t", max_entries_per_batch=7)
    assert same.key("n") == key
    others = [
        replace(one, topic="u"),
        replace(one, topic="pattern:t"),
        replace(one, starting_millis=6),
        replace(one, ending_offsets="latest"),
        replace(one, cluster=Cluster(service_url="pulsar://b")),
    ]
    keys = {key, one.key("m"), one.key("n", "a > 1"), *(each.key("n") for each in others)}
    assert len(keys) == 3 + len(others)
    several = replace(one, topic="a, b")
    assert several.key("n") == replace(one, topic="b,a").key("n")
    assert one.key(None) is None


def test_options_of_a_batch() -> None:
    source = TopicRange(
        cluster=CLUSTER, topic="t", starting_millis=5, is_raw=True, max_entries_per_batch=7
    )
    assert source.connector_options(is_streaming=False) == {
        "x": "y",
        "service.url": "pulsar://a",
        "admin.url": "http://a",
        "topic": "t",
        "startingTime": "5",
        "valueMode": "raw",
    }


def test_options_of_a_stream() -> None:
    source = TopicRange(cluster=CLUSTER, topic="t", max_entries_per_batch=7)
    options = source.connector_options(is_streaming=True)
    assert options["startingOffsets"] == "earliest"
    assert options["maxEntriesPerTrigger"] == "7"


def test_one_partition_of_a_range() -> None:
    partition = "persistent://public/default/t-partition-1"
    cluster = replace(CLUSTER, options={"startingTime": '{"u": 5}', "pollTimeoutMs": "9"})
    source = TopicRange(
        cluster=cluster,
        topic="t,u",
        starting_offsets='{"t": "3:7", "u-partition-1": "9:0"}',
        ending_offsets="latest",
        is_raw=True,
    )
    own = source.of_partition(partition)
    assert (own.topic, own.is_raw) == (partition, True)
    assert own.starting_offsets == '{"t": "3:7"}'
    assert own.ending_offsets == "latest"
    assert own.cluster.options == {"pollTimeoutMs": "9"}
    assert source.of_partition("v").starting_offsets is None


def test_options_of_a_target() -> None:
    target = TopicTarget(cluster=CLUSTER, topic="t", idempotency_key="k", sequence_order="content")
    options = target.connector_options()
    assert options["deliveryGuarantee"] == "exactly-once"
    assert options["sequenceOrder"] == "content"
    assert options["idempotencyKey"] == "k"


def test_an_order_is_a_matter_of_exactly_once() -> None:
    target = TopicTarget(
        cluster=CLUSTER, topic="t", guarantee=Guarantee.AT_LEAST_ONCE, sequence_order="content"
    )
    assert "sequenceOrder" not in target.connector_options()


def test_options_of_clusters_are_not_shown() -> None:
    cluster = Cluster(service_url="pulsar://a", options={"pulsar.client.authParams": "abcd"})
    assert "abcd" not in repr(cluster)
