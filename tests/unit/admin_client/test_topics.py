"""Calls about topics are those of pulsar-admin."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.admin_client import topics
from pulsar_py.admin_client.call import Call
from pulsar_py.admin_client.records import MessageIdData, SchemaPayload
from tests.unit.admin_client.recorded_calls import BUNDLE, NAMESPACE, TOPIC, was_recorded

SCHEMA = SchemaPayload(type="AVRO", schema='{"type":"record","name":"r","fields":[]}')
CALLS: list[Call[Any]] = [
    topics.topics(NAMESPACE),
    topics.topics(NAMESPACE, bundle=BUNDLE, system_topics=True),
    topics.topics(NAMESPACE, domain="non-persistent"),
    topics.partitioned_topics(NAMESPACE),
    topics.create_topic(TOPIC, {"a": "b"}),
    topics.create_partitioned_topic(TOPIC, 7),
    topics.create_partitioned_topic(TOPIC, 7, {"a": "b"}),
    topics.create_missed_partitions(TOPIC),
    topics.partitions(TOPIC),
    topics.grow_partitions(TOPIC, 7, local_only=True, force=True),
    topics.delete_topic(TOPIC, force=True),
    topics.delete_partitioned_topic(TOPIC),
    topics.unload_topic(TOPIC),
    topics.truncate(TOPIC),
    topics.trim(TOPIC),
    topics.terminate(TOPIC),
    topics.terminate_partitions(TOPIC),
    topics.compact(TOPIC),
    topics.compaction_status(TOPIC),
    topics.offload_status(TOPIC),
    topics.stats(TOPIC),
    topics.stats(TOPIC, precise=True, sizes=False, earliest=True),
    topics.partitioned_stats(TOPIC, per_partition=True, precise=True, sizes=False, earliest=True),
    topics.internal_stats(TOPIC, metadata=True),
    topics.partitioned_internal_stats(TOPIC),
    topics.internal_info(TOPIC),
    topics.last_message_id(TOPIC),
    topics.message_id_at(TOPIC, 1_704_164_645_000),
    topics.backlog_bytes(TOPIC, MessageIdData(ledger_id=3, entry_id=4)),
    topics.permissions(TOPIC),
    topics.grant_permission(TOPIC, "joe", ["produce", "consume"]),
    topics.revoke_permission(TOPIC, "joe"),
    topics.properties(TOPIC),
    topics.set_properties(TOPIC, {"a": "b"}),
    topics.remove_property(TOPIC, "k"),
    topics.shadow_topics(TOPIC),
    topics.set_shadow_topics(TOPIC, ["persistent://t/n/x", "persistent://t/n/y"]),
    topics.remove_shadow_topics(TOPIC),
    topics.lookup(TOPIC),
    topics.bundle_of(TOPIC),
    topics.schema(TOPIC),
    topics.schema("x", 3),
    topics.all_schemas(TOPIC),
    topics.upload_schema(TOPIC, SCHEMA),
    topics.delete_schema(TOPIC, force=True),
    topics.check_schema(TOPIC, SCHEMA),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.method} {call.path}")
def test_pulsar_admin_sends_the_same(call: Call[Any]) -> None:
    assert was_recorded(call)


def test_what_the_recorded_tool_could_not_send() -> None:
    assert topics.schema_metadata("x").path == "/admin/v2/schemas/public/default/x/metadata"
    call = topics.offload("x", MessageIdData(ledger_id=1, entry_id=2))
    assert (call.method, call.path) == ("PUT", "/admin/v2/persistent/public/default/x/offload")


def test_what_deletes_says_what_is_lost() -> None:
    assert topics.delete_topic("x").destroys == "topic persistent://public/default/x"
    assert "all messages" in topics.truncate("x").destroys
