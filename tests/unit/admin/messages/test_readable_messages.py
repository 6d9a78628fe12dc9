"""Messages that people can read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pulsar_py.proto.PulsarApi_pb2 import (
    CompressionType,
    EncryptionKeys,
    MessageMetadata,
    Schema,
    SingleMessageMetadata,
)
from pulsar_py.schema.json_schema import JsonSchema
from pulsar_py.server.schema_registry import SchemaPolicies
from pulsar_py.server.schema_registry.definition import SchemaDefinition
from pulsar_py.wire.batch import join_batch
from pulsar_py.wire.payload import encode_entry
from tests.unit.admin.messages.conftest import (
    T,
    entry_of,
    messages,
    metadata_of,
    property_of,
    topic_with,
)
from tests.unit.admin.resources.conftest import Admin

S = T + "/subscription/s"


def batch_of(*payloads: bytes, key: str = "k", **fields: object) -> bytes:
    singles = [
        (SingleMessageMetadata(payload_size=len(each), partition_key=f"{key}{index}"), each)
        for index, each in enumerate(payloads)
    ]
    metadata = metadata_of(7, num_messages_in_batch=len(payloads), **fields)
    return encode_entry(metadata, join_batch(singles))


async def values(admin: Admin, path: str) -> list[Any]:
    return [each["value"] for each in (await admin.get(path))["messages"]]


async def test_a_message_is_shown_with_all_that_it_has(admin: Admin) -> None:
    fields = {
        "partition_key": "k",
        "ordering_key": b"o",
        "event_time": 1_700_000_000_500,
        "deliver_at_time": 1_700_000_001_000,
        "replicated_from": "west",
        "properties": [property_of("a", "1")],
        "compression": CompressionType.ZSTD,
    }
    topic = await topic_with(admin, entry_of(3, b"hello", **fields))
    ledger_id = topic.ledger.last_confirmed_entry.ledger_id
    assert await admin.get(T + "/messages") == {
        "messages": [
            {
                "messageId": f"{ledger_id}:0:-1",
                "topic": "persistent://public/default/a",
                "publishTime": "2023-11-14T22:13:20.003Z",
                "eventTime": "2023-11-14T22:13:20.500Z",
                "deliverAtTime": "2023-11-14T22:13:21.000Z",
                "producerName": "p",
                "sequenceId": 3,
                "replicatedFrom": "west",
                "key": "k",
                "orderingKey": "o",
                "properties": {"a": "1"},
                "sizeBytes": 5,
                "schemaType": "BYTES",
                "value": "hello",
            }
        ],
        "scannedEntries": 1,
    }


async def test_a_topic_is_read_page_by_page_also_within_a_batch(admin: Admin) -> None:
    await topic_with(admin, *messages(2), batch_of(b"x", b"y", b"z"), entry_of(9, b"last"))
    found, path, pages = [], T + "/messages?limit=2", 0
    while True:
        answer = await admin.get(path)
        found += [each["value"] for each in answer["messages"]]
        pages += 1
        if "next" not in answer:
            break
        path = f"{T}/messages?limit=2&messageId={answer['next']}"
    assert found == ["m0", "m1", "x", "y", "z", "last"]
    assert pages == 3


async def test_only_a_backlog_is_shown_and_nothing_acknowledged(admin: Admin) -> None:
    topic = await topic_with(admin, *messages(4))
    cursor = topic.ledger.cursors["s"]
    first = topic.ledger.first_position
    cursor.acknowledge([first._replace(entry_id=each) for each in (0, 2)])
    assert await values(admin, S + "/messages") == ["m1", "m3"]
    assert cursor.backlog_count() == 2
    assert await admin.status("GET", T + "/subscription/other/messages") == 404


async def test_messages_are_found_by_time_key_property_and_text(admin: Admin) -> None:
    entries = [
        entry_of(0, b"apple pie", partition_key="a", properties=[property_of("color", "red")]),
        entry_of(1, b"pear pie", partition_key="b", properties=[property_of("color", "green")]),
        batch_of(b"apple", b"plum"),
    ]
    await topic_with(admin, *entries)
    at = 1_700_000_000_001
    assert await values(admin, f"{T}/messages?timestamp={at}") == ["pear pie", "apple", "plum"]
    assert await values(admin, T + "/messages?key=b") == ["pear pie"]
    assert await values(admin, T + "/messages?key=k1") == ["plum"]
    assert await values(admin, T + "/messages?property=color") == ["apple pie", "pear pie"]
    assert await values(admin, T + "/messages?property=color=green") == ["pear pie"]
    assert await values(admin, T + "/messages?text=apple") == ["apple pie", "apple"]
    assert await values(admin, T + "/messages?text=apple&key=k0") == ["apple"]


async def test_messages_are_found_by_fields_of_their_values(admin: Admin) -> None:
    texts = [b'{"n": %d, "who": {"name": "x%d"}}' % (n, n) for n in range(4)]
    await topic_with(admin, *(entry_of(n, text) for n, text in enumerate([*texts, b"no JSON"])))

    async def found(query: str) -> list[int]:
        return [json.loads(each)["n"] for each in await values(admin, f"{T}/messages?{query}")]

    assert await found("text=%22n%22:%202") == [2]  # as it is written there
    assert await found("text=x2&where=n%3E1") == [2]
    assert await found("where=n%3E1") == [2, 3]
    assert await found("where=who.name=x2") == [2]
    assert await found("where=who.name~%5Ex%5B12%5D$") == [1, 2]
    assert await found("where=n%3E0&where=n%3C3") == [1, 2]
    assert await found("where=nothing=1") == []


async def test_values_are_decoded_by_the_schema_that_they_name(admin: Admin) -> None:
    info = JsonSchema(
        schema_definition=b'{"type":"record","name":"R","fields":[{"name":"n","type":"int"}]}'
    ).schema_info()
    definition = SchemaDefinition(Schema.Json, info.data)
    version = await admin.service.schemas.put_if_absent(
        "public/default/a", definition, strategy=SchemaPolicies().strategy
    )
    topic = await topic_with(
        admin,
        entry_of(0, b'{"n":1}', schema_version=version),
        entry_of(1, b"no json", schema_version=version),
        entry_of(2, b"{}", schema_version=b"\0" * 7 + b"\x09"),
    )
    assert topic.ledger.entries_count == 3
    good, bad, unknown = (await admin.get(T + "/messages"))["messages"]
    assert (good["value"], good["schemaType"], good["schemaVersion"]) == ({"n": 1}, "JSON", 0)
    assert bad["payload"] == "no json"
    assert "value" not in bad
    assert "no version" in unknown["error"]


async def test_what_cannot_be_read_is_shown_as_bytes(admin: Admin) -> None:
    secret = [EncryptionKeys(key="k1", value=b"wrapped")]
    await topic_with(
        admin,
        entry_of(0, b"\x01\x02", encryption_keys=secret),
        entry_of(1, b"part", num_chunks_from_msg=3, chunk_id=1, uuid="u"),
        encode_entry(
            MessageMetadata(
                producer_name="p", sequence_id=2, publish_time=1, num_messages_in_batch=9
            ),
            b"short",
        ),
        entry_of(4, b"", null_value=True, partition_key="gone"),
        entry_of(5, b"after"),
    )
    encrypted, chunk, batch, tombstone, after = (await admin.get(T + "/messages"))["messages"]
    assert encrypted["encryptionKeys"] == ["k1"]
    assert encrypted["error"].startswith("encrypted")
    assert encrypted["payload"] == {"base64": "AQI="}
    assert chunk["chunk"] == {"id": 1, "count": 3}
    assert batch["payload"] == "short"
    assert batch["error"]
    assert (tombstone["isNull"], tombstone["value"], tombstone["key"]) == (True, None, "gone")
    assert after["value"] == "after"


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=x",
        "messageId=1",
        "messageId=a:b",
        "messageId=1:2:3:4:5",
        "messageId=-2:0",
        "messageId=99999999999999999999:0",
        "timestamp=soon",
        "timestamp=5&messageId=1:0",
        "where=amount",
        "where=amount~(",
        "where=amount~(?=a)",  # RE2 has no such thing
        "where=a=" + "9" * 1000,
    ],
)
async def test_what_makes_no_sense_is_refused(admin: Admin, query: str) -> None:
    await topic_with(admin, *messages(1))
    assert await admin.status("GET", f"{T}/messages?{query}") == 400


async def test_partitioned_topics_are_read_partition_by_partition(admin: Admin) -> None:
    await admin.call("PUT", "/admin/v2/persistent/public/default/p/partitions", 2)
    path = "/admin/v2/persistent/public/default/p"
    assert await admin.status("GET", path + "/messages") == 405
    assert (await admin.get(path + "-partition-1/messages"))["messages"] == []
    assert await admin.status("GET", "/admin/v2/persistent/public/default/none/messages") == 404


async def test_a_long_scan_ends_and_is_gone_on_with(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulsar_py.admin.messages.readable_messages.MAX_SCANNED_ENTRIES", 3)
    await topic_with(admin, *messages(5))
    first = await admin.get(T + "/messages?text=m4")
    assert (first["messages"], first["scannedEntries"]) == ([], 3)
    assert await values(admin, f"{T}/messages?text=m4&messageId={first['next']}") == ["m4"]
