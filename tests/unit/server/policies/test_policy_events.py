"""The events of `__change_events`, against messages that Apache Pulsar wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import fields as fields_of

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.common.names import TopicName
from pulsar_py.common.policies import (
    DispatchRate,
    InactiveTopicPolicy,
    PersistencePolicies,
    PublishRate,
    RetentionPolicy,
    SubscribeRate,
)
from pulsar_py.metadata.documents import TopicPolicies
from pulsar_py.metadata.json_document import Key
from pulsar_py.proto.SchemaRegistryFormat_pb2 import SchemaInfo
from pulsar_py.server.policies.policy_events import (
    SCHEMA_PROPERTIES,
    PolicyEvent,
    decode_event,
    encode_event,
    schema_text,
)

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "recordings" / "change_events.json").read_text()
)
TOPIC = TopicName.parse("persistent://public/tp/a")
RATE = {
    "dispatchThrottlingRateInByte": 5,
    "dispatchThrottlingRateInMsg": 6,
    "ratePeriodInSecond": 1,
    "relativeToPublishRate": True,
}
EVERY_SHAPE: dict[str, Any] = {
    "backLogQuotaMap": {
        "message_age": {"limit": 1, "limitSize": 1, "limitTime": 9, "policy": "producer_exception"}
    },
    "deduplicationEnabled": False,
    "dispatchRate": RATE,
    "subscriptionDispatchRate": RATE,
    "subscriptionPolicies": {"s": {"dispatchRate": RATE}},
    "subscriptionTypesEnabled": ["Key_Shared", "Shared"],
    "entryFilters": {"entryFilterNames": "a,b"},
    "schemaCompatibilityStrategy": "FULL",
    "replicationClusters": ["a", "b"],
    "delayedDeliveryTickTimeMillis": 1 << 40,
    "offloadPolicies": {
        "managedLedgerOffloadDriver": "aws-s3",
        "managedLedgerOffloadedReadPriority": "BOOKKEEPER_FIRST",
        "s3Driver": True,
        "gcsDriver": False,
        "fileSystemDriver": False,
    },
    "persistence": {
        "bookkeeperAckQuorum": 1,
        "bookkeeperEnsemble": 2,
        "bookkeeperWriteQuorum": 2,
        "managedLedgerMaxMarkDeleteRate": 0.5,
    },
}


def test_the_schema_is_the_one_that_apache_pulsar_registers() -> None:
    entry = bytes.fromhex(RECORDED["schema_entry_hex"])
    assert schema_text().encode() in entry
    info = SchemaInfo.FromString(entry[3 : 3 + _info_size(entry)])
    assert info.schema == schema_text().encode()
    assert {pair.key: pair.value for pair in info.props} == SCHEMA_PROPERTIES


def _info_size(entry: bytes) -> int:
    return (entry[1] & 0x7F) | (entry[2] << 7)


@pytest.mark.parametrize("message", RECORDED["messages"])
def test_recorded_events_are_read_and_written_the_same(message: dict[str, Any]) -> None:
    payload = bytes.fromhex(message["payload_hex"])
    event = decode_event(message["partition_key"], payload)
    assert event is not None
    assert event.topic == TOPIC
    assert (event.document is None) == message["null_value"]
    assert event.key == message["partition_key"]
    assert encode_event(event, "vec") == payload


def test_what_a_recorded_event_says() -> None:
    payload = bytes.fromhex(RECORDED["messages"][1]["payload_hex"])
    assert decode_event(str(TOPIC), payload) == PolicyEvent(
        TOPIC,
        is_global=False,
        document={
            "messageTTLInSeconds": 3600,
            "retentionPolicies": {"retentionSizeInMB": 20, "retentionTimeInMinutes": 10},
        },
    )


# Of Apache Pulsar 4.2.4, after {"limitTime": 50, "policy": "consumer_backlog_eviction"}.
AGE_QUOTA = b"\x16message_age\x00\x00d\x02\x04\x00"


def test_a_quota_by_age_alone_has_no_size_in_an_event() -> None:
    quota = {"limit": 0, "limitSize": 0, "limitTime": 50, "policy": "consumer_backlog_eviction"}
    document = {"backLogQuotaMap": {"message_age": quota}}
    event = PolicyEvent(TOPIC, is_global=False, document=document)
    payload = encode_event(event, "standalone")
    assert AGE_QUOTA in payload
    assert decode_event(event.key, payload) == event


@pytest.mark.parametrize("is_global", [False, True])
def test_policies_of_every_shape_come_back(*, is_global: bool) -> None:
    event = PolicyEvent(TOPIC, is_global, EVERY_SHAPE)
    assert decode_event(event.key, encode_event(event, "c")) == event


def test_each_policy_of_topics_has_a_field_in_the_schema() -> None:
    fields = {field["name"] for field in _record("TopicPolicies", json.loads(schema_text()))}
    keys = {each.json_name for each in vars(TopicPolicies).values() if isinstance(each, Key)}
    assert keys == fields - {"isGlobal"}


def _record(name: str, definition: Any) -> list[dict[str, Any]]:
    """The fields of a record, wherever in the definition it is."""
    if isinstance(definition, dict):
        if definition.get("name") == name and definition.get("type") == "record":
            return list(definition["fields"])
        definition = list(definition.values())
    inner = definition if isinstance(definition, list) else []
    return next((found for each in inner if (found := _record(name, each))), [])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("retention", RetentionPolicy),
        ("persistence", PersistencePolicies),
        ("inactive_topics", InactiveTopicPolicy),
        ("dispatch_rate", DispatchRate),
        ("publish_rate", PublishRate),
        ("subscribe_rate", SubscribeRate),
    ],
)
def test_each_field_of_a_policy_comes_back_from_its_event(name: str, kind: type[Struct]) -> None:
    policy = kind(*(_other_than_default(field.type) for field in fields_of(kind)))
    document = dict(TopicPolicies(**{name: policy}).json)
    event = PolicyEvent(TOPIC, is_global=False, document=document)
    assert decode_event(event.key, encode_event(event, "c")) == event


def _other_than_default(kind: Any) -> Any:
    return {int: 7, float: 0.5, bool: True}.get(kind) or list(kind)[-1]


def test_partitions_have_the_event_of_their_topic() -> None:
    assert PolicyEvent(TOPIC.partition(3), is_global=True, document=None).key == f"__G__{TOPIC}"


def test_what_is_no_event() -> None:
    assert decode_event("no://topic", b"") is None
    with pytest.raises(SchemaSerializationError, match="2 bytes do not fit"):
        decode_event(str(TOPIC), b"\x02\x04")
