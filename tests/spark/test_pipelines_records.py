"""Pipelines over topics of AVRO, JSON and KEY_VALUE records, whose schemas grow meanwhile."""

from __future__ import annotations

import asyncio
import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

from pulsar_py import schema as schemas
from pulsar_py.client import Client
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID
from pulsar_py.pipeline.aggregate import AggregateSettings, aggregate
from pulsar_py.pipeline.backfill import BackfillSettings, backfill
from pulsar_py.pipeline.compact import CompactSettings, compact
from pulsar_py.pipeline.copy import CopySettings, copy
from pulsar_py.pipeline.export import ExportSettings, default_checkpoint, export
from pulsar_py.pipeline.lake import LakeSettings, read_table
from pulsar_py.pipeline.replay import ReplaySettings, replay
from pulsar_py.pipeline.report import ReportSettings, report
from pulsar_py.pipeline.settings import Cluster, TopicRange, TopicTarget
from pulsar_py.pipeline.tables import Target
from pulsar_py.pipeline.topics import Streaming
from pulsar_py.schema import KeyValue, KeyValueEncodingType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLD: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "map", "values": "string"}, "default": {}},
    ],
}
BY = {"type": "record", "name": "By", "fields": [{"name": "name", "type": "string"}]}
NEW = OLD | {
    "fields": [
        *OLD["fields"],
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "by", "type": ["null", BY], "default": None},
    ]
}
KINDS: dict[str, Any] = {"AVRO": schemas.AvroSchema, "JSON": schemas.JsonSchema}
KEY = {"type": "record", "name": "K", "fields": [{"name": "id", "type": "long"}]}

AT = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)

both_kinds = pytest.mark.parametrize("kind", list(KINDS))


@pytest.fixture
def topic() -> str:
    return f"persistent://public/default/records-{uuid.uuid4().hex}"


def order(number: int, **more: object) -> dict[str, Any]:
    kind = "OLD" if number % 2 else "NEW"
    moment = AT + timedelta(milliseconds=number)
    return {"id": number, "kind": kind, "at": moment, "tags": {}} | more


def publish(
    cluster: Cluster, topic: str, schema: Any, *values: object, key: str | None = None
) -> None:
    """Keys are the last digit of the id, unless one is given."""

    async def send() -> None:
        async with (
            Client(cluster.service_url) as client,
            await client.create_producer(topic, schema=schema) as producer,
        ):
            for value in values:
                if isinstance(value, KeyValue):
                    await producer.send(value)
                else:
                    own = key if key is not None else str(value["id"] % 10)  # type: ignore[index] # an order
                    await producer.send(value, key=own)

    asyncio.run(send())


def publish_both_versions(cluster: Cluster, topic: str, kind: str) -> None:
    publish(cluster, topic, KINDS[kind](schema_definition=OLD), *map(order, range(20)))
    newer = KINDS[kind](schema_definition=NEW)
    values = [order(each, note=f"n{each}", by={"name": "me"}) for each in range(20, 30)]
    publish(cluster, topic, newer, *values)
    publish(cluster, topic, newer, None, key="3")


def stored(cluster: Cluster, topic: str, schema: Any) -> list[tuple[Any, str | None]]:
    """Values and keys of a topic, in its order."""

    async def read() -> list[tuple[Any, str | None]]:
        found = []
        async with (
            Client(cluster.service_url) as client,
            await client.create_reader(topic, EARLIEST_MESSAGE_ID, schema=schema) as reader,
        ):
            while await reader.has_message_available():
                message = await reader.read_next()
                found.append((message.value(), message.partition_key()))
        return found

    return asyncio.run(read())


def definition_of(cluster: Cluster, topic: str) -> tuple[str, bytes]:
    async def ask() -> tuple[str, bytes]:
        async with Client(cluster.service_url) as client:
            answer = await client.context.lookup.schema(topic, None)
            assert answer is not None
            info = schemas.SchemaInfo.from_wire(answer.schema)
            return info.type.name, info.data

    return asyncio.run(ask())


def target_of(cluster: Cluster, topic: str, name: str | None = None) -> TopicTarget:
    return TopicTarget(cluster=cluster, topic=topic, idempotency_key=name)


# --- export and backfill -------------------------------------------------------------------------


@both_kinds
@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_columns_of_a_newer_schema_appear_in_the_table_and_go_back(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path, *, kind: str, form: str
) -> None:
    target = Target.parse(f"{form}:{tmp_path / 'table'}")
    settings = ExportSettings(
        source=TopicRange(cluster=cluster, topic=topic),
        lake=LakeSettings(target=target),
        streaming=Streaming(checkpoint=default_checkpoint(target)),
    )
    publish(cluster, topic, KINDS[kind](schema_definition=OLD), *map(order, range(20)))
    assert export(spark, settings) == 20
    assert "note" not in read_table(spark, target).columns
    newer = KINDS[kind](schema_definition=NEW)
    publish(cluster, topic, newer, order(20, note="x", by={"name": "me"}, tags={"a": "b"}))
    assert export(spark, settings) == 1
    rows = read_table(spark, target)
    assert rows.where("note is null and by is null").count() == 20
    (row,) = rows.where("note = 'x'").collect()
    assert (row.id, row.kind, row.by.name, row.tags) == (20, "NEW", "me", {"a": "b"})
    millis = rows.selectExpr("unix_millis(at) at").orderBy("at")
    assert millis.first().at == AT.timestamp() * 1000

    back = f"{topic}-back"
    publish(cluster, back, newer)
    backfill(
        spark,
        BackfillSettings(source=target, target=target_of(cluster, back), name="back", tasks=2),
    )
    found = stored(cluster, back, newer)
    assert sorted(value["id"] for value, _ in found) == list(range(21))
    assert all(key == str(value["id"] % 10) for value, key in found)


# --- copy, replay and compact --------------------------------------------------------------------


@both_kinds
@pytest.mark.parametrize("is_stream", [True, False])
def test_a_copy_has_the_schema_the_values_and_the_tombstones(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path, kind: str, *, is_stream: bool
) -> None:
    publish_both_versions(cluster, topic, kind)
    to = f"{topic}-to"
    settings = CopySettings(
        source=TopicRange(cluster=cluster, topic=topic),
        target=target_of(cluster, to, None if is_stream else "copy"),
        streaming=Streaming(checkpoint=str(tmp_path)) if is_stream else None,
    )
    copy(spark, settings)
    copy(spark, settings)
    newer = KINDS[kind](schema_definition=NEW)
    assert definition_of(cluster, to) == definition_of(cluster, topic)
    assert stored(cluster, to, newer) == stored(cluster, topic, newer)


@both_kinds
def test_a_copy_of_chosen_fields_has_a_schema_of_its_own(
    spark: SparkSession, cluster: Cluster, topic: str, kind: str
) -> None:
    publish_both_versions(cluster, topic, kind)
    settings = CopySettings(
        source=TopicRange(cluster=cluster, topic=topic),
        target=target_of(cluster, f"{topic}-to", "copy"),
        where="note = 'n25'",
        select="__key, cast(id as string) as id, upper(note) as note, by.name as who",
    )
    copy(spark, settings)
    (((value, key)),) = stored(cluster, f"{topic}-to", schemas.AutoConsumeSchema())
    assert key == "5"
    assert {name: value[name] for name in ("id", "note", "who")} == {
        "id": "25",
        "note": "N25",
        "who": "me",
    }


@both_kinds
def test_a_range_of_records_is_replayed(
    spark: SparkSession, cluster: Cluster, topic: str, kind: str
) -> None:
    publish_both_versions(cluster, topic, kind)
    settings = ReplaySettings(
        source=TopicRange(cluster=cluster, topic=topic, starting_millis=1, ending_millis=1 << 42),
        target=target_of(cluster, f"{topic}-again"),
        name="again",
        where="id < 5 or __isTombstone",
    )
    replay(spark, settings)
    found = stored(cluster, f"{topic}-again", KINDS[kind](schema_definition=NEW))
    assert [None if value is None else value["id"] for value, _ in found] == [0, 1, 2, 3, 4, None]


@pytest.mark.parametrize("encoding", list(KeyValueEncodingType))
def test_pairs_are_copied_as_pairs(
    spark: SparkSession, cluster: Cluster, topic: str, encoding: KeyValueEncodingType
) -> None:
    schema = schemas.KeyValueSchema(
        schemas.AvroSchema[Any](schema_definition=KEY),
        schemas.JsonSchema[Any](schema_definition=OLD),
        encoding,
    )
    pairs = [KeyValue({"id": each * 100}, order(each)) for each in range(5)]
    publish(cluster, topic, schema, *pairs, KeyValue({"id": 100}, None))
    settings = CopySettings(
        source=TopicRange(cluster=cluster, topic=topic),
        target=target_of(cluster, f"{topic}-to", "copy"),
    )
    copy(spark, settings)
    assert definition_of(cluster, f"{topic}-to") == definition_of(cluster, topic)
    assert stored(cluster, f"{topic}-to", schema) == stored(cluster, topic, schema)


@both_kinds
def test_the_newest_record_of_each_key_is_kept(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path, kind: str
) -> None:
    publish_both_versions(cluster, topic, kind)
    source = TopicRange(cluster=cluster, topic=topic)
    newest = [each for each in range(20, 30) if each != 23]
    compact(
        spark, CompactSettings(source=source, topic=target_of(cluster, f"{topic}-newest", "newest"))
    )
    found = stored(cluster, f"{topic}-newest", KINDS[kind](schema_definition=NEW))
    assert sorted(value["id"] for value, _ in found) == newest
    target = Target.parse(f"delta:{tmp_path / 'newest'}")
    compact(spark, CompactSettings(source=source, lake=LakeSettings(target=target)))
    rows = read_table(spark, target).select("id", "note", "by.name").orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(each, f"n{each}", "me") for each in newest]


def test_the_newest_pair_of_each_key_is_kept(
    spark: SparkSession, cluster: Cluster, topic: str
) -> None:
    schema = schemas.KeyValueSchema(
        schemas.AvroSchema[Any](schema_definition=KEY),
        schemas.JsonSchema[Any](schema_definition=OLD),
        KeyValueEncodingType.SEPARATED,
    )
    pairs = [KeyValue({"id": each % 3 * 100}, order(each)) for each in range(9)]
    publish(cluster, topic, schema, *pairs, KeyValue({"id": 100}, None))
    source = TopicRange(cluster=cluster, topic=topic)
    to = target_of(cluster, f"{topic}-newest", "newest")
    compact(spark, CompactSettings(source=source, topic=to))
    found = [pair for pair, _ in stored(cluster, f"{topic}-newest", schema)]
    assert sorted(found, key=lambda pair: pair.key["id"]) == [pairs[6], pairs[8]]


# --- aggregate and report ------------------------------------------------------------------------


@both_kinds
def test_fields_are_added_up_by_window(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path, kind: str
) -> None:
    publish_both_versions(cluster, topic, kind)
    windows = f"{topic}-windows"
    settings = AggregateSettings(
        source=TopicRange(cluster=cluster, topic=topic),
        keys=["kind"],
        aggregates="count, sum(id), count(note) as notes",
        window_seconds=60,
        time_column="at",
        where="kind is not null",
        topic=target_of(cluster, windows, "windows"),
    )
    aggregate(spark, settings)
    found = stored(cluster, windows, schemas.StringSchema())
    sums = {key: json.loads(value) for value, key in found}
    assert {key: (each["count"], each["sum_id"], each["notes"]) for key, each in sums.items()} == {
        "NEW": (15, sum(range(0, 30, 2)), 5),
        "OLD": (15, sum(range(1, 30, 2)), 5),
    }


@both_kinds
def test_a_page_of_records(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path, kind: str
) -> None:
    publish_both_versions(cluster, topic, kind)
    page = tmp_path / "page.html"
    traffic = report(
        spark, ReportSettings(source=TopicRange(cluster=cluster, topic=topic), page=page)
    )
    assert (traffic.messages, traffic.keys_count) == (31, 10)
    assert "<svg" in page.read_text()
