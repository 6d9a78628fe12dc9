"""Messages of a log become events, whoever wrote them."""

from __future__ import annotations

import json

import pytest

from pulsar_py.common.policies import SchemaCompatibilityStrategy
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.schema.avro.avro_codec import AvroWriter
from pulsar_py.server.change_events.event_decoder import EventDecoder, LoggedEvent
from pulsar_py.server.change_events.event_messages import EventMessage
from pulsar_py.server.policies.policy_events import encode_event
from pulsar_py.server.schema_registry import SchemaDefinition
from tests.unit.server.change_events.event_parts import EVENTS, A, gone, local
from tests.unit.server.topics.rig import Rig

EVENT = local(maxProducerPerTopic=1)


def message(key: str = str(A), payload: bytes = b"", version: bytes = b"") -> EventMessage:
    return EventMessage(key, payload, version, 7)


async def test_events_and_removals_have_their_time(rig: Rig) -> None:
    decoder = EventDecoder(EVENTS, rig.broker.schemas)
    found = await decoder.events_of([message(payload=encode_event(EVENT, "c")), message()], "1:0")
    assert found == [LoggedEvent(EVENT, 7), LoggedEvent(gone(), 7)]


async def test_one_that_can_not_be_read_does_not_hide_the_next(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    decoder = EventDecoder(EVENTS, rig.broker.schemas)
    other = "persistent://public/other/a"  # of another namespace
    found = await decoder.events_of([message(payload=b"x"), message(other), message()], "1:0")
    assert found == [LoggedEvent(gone(), 7)]
    told = [each for each in caplog.records if each.message == "policy event passed over"]
    assert [each.__dict__["position"] for each in told] == ["1:0"]


async def test_the_definition_of_the_version_reads_the_payload(rig: Rig) -> None:
    """An older one, whose policies had one field."""
    policies = {
        "type": "record",
        "name": "TopicPolicies",
        "fields": [{"name": "maxProducerPerTopic", "type": ["null", "int"], "default": None}],
    }
    names = ("domain", "tenant", "namespace", "topic")
    event = {
        "type": "record",
        "name": "TopicPoliciesEvent",
        "fields": [
            *({"name": name, "type": ["null", "string"], "default": None} for name in names),
            {"name": "policies", "type": ["null", policies], "default": None},
        ],
    }
    kind = {"type": "enum", "name": "EventType", "symbols": ["TOPIC_POLICY"]}
    definition = {
        "type": "record",
        "name": "PulsarEvent",
        "namespace": "org.apache.pulsar.common.events",
        "fields": [
            {"name": "eventType", "type": ["null", kind], "default": None},
            {"name": "topicPoliciesEvent", "type": ["null", event], "default": None},
        ],
    }
    payload = AvroWriter(definition).write(
        {
            "eventType": "TOPIC_POLICY",
            "topicPoliciesEvent": {
                "domain": "persistent",
                "tenant": "public",
                "namespace": "default",
                "topic": "a",
                "policies": {"maxProducerPerTopic": 1},
            },
        }
    )
    version = await rig.broker.schemas.put_if_absent(
        EVENTS.schema_id,
        SchemaDefinition(type=Schema.Avro, data=json.dumps(definition).encode(), properties={}),
        strategy=SchemaCompatibilityStrategy.ALWAYS_COMPATIBLE,
    )
    decoder = EventDecoder(EVENTS, rig.broker.schemas)
    (found,) = await decoder.events_of([message(payload=payload, version=version)], "1:0")
    assert found.event.document is not None
    assert found.event.document["maxProducerPerTopic"] == 1
