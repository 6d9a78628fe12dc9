"""Texts of options as values, and values as options of the connector."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.settings import (
    Cluster,
    Guarantee,
    PartitionColumn,
    TopicRange,
    TopicTarget,
    parse_assignments,
    parse_duration,
    parse_size,
    parse_time,
    quoted,
    topic_option,
)

CLUSTER = Cluster(service_url="pulsar://a", admin_url="http://a", options={"x": "y"})
NOW = 1_700_000_000_000


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


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("country", PartitionColumn("country", "`country`")),
        ("date(__publishTime)", PartitionColumn("publishTime_date", "date(__publishTime)")),
        ("d = date_trunc('MONTH', t)", PartitionColumn("d", "date_trunc('MONTH', t)")),
    ],
)
def test_partition_columns(text: str, column: PartitionColumn) -> None:
    assert PartitionColumn.parse(text) == column


@pytest.mark.parametrize("text", ["", "a b", "=x", "x=", "date(a, b)"])
def test_what_is_no_partition_column(text: str) -> None:
    with pytest.raises(ConfigurationError, match="partition-by"):
        PartitionColumn.parse(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("5m", 300), ("1.5h", 5400), ("7", 7), ("250ms", 0.25)]
)
def test_lengths_of_time(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("128MiB", 128 << 20), ("64M", 64_000_000), ("1000", 1000), ("2 kb", 2000)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "x", "5 parsecs", "-5s"])
def test_what_is_neither(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not"):
        parse_duration(text)
    with pytest.raises(ConfigurationError, match="is not"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("now", NOW),
        ("-2h", NOW - 7_200_000),
        ("1700000000000", 1_700_000_000_000),
        ("2023-11-14", 1_699_920_000_000),
        ("2023-11-14T22:13:20", NOW),
        ("2023-11-14T23:13:20+01:00", NOW),
    ],
)
def test_times(text: str, millis: int) -> None:
    assert parse_time(text, NOW) == millis


def test_what_is_no_time() -> None:
    with pytest.raises(ConfigurationError, match="'yesterday' is not a time"):
        parse_time("yesterday", NOW)


def test_assignments() -> None:
    assert parse_assignments(["a=b=c", "d="], "--conf") == {"a": "b=c", "d": ""}
    with pytest.raises(ConfigurationError, match="--conf: 'a'"):
        parse_assignments(["a"], "--conf")


def test_names_in_sql() -> None:
    assert quoted("a`b") == "`a``b`"


def test_options_of_clusters_are_not_shown() -> None:
    cluster = Cluster(service_url="pulsar://a", options={"pulsar.client.authParams": "abcd"})
    assert "abcd" not in repr(cluster)
