"""The rules of each type, by every strategy, for producers and consumers."""

from __future__ import annotations

import json
import struct

import pytest

from pulsar_py.common.errors import IncompatibleSchemaError
from pulsar_py.common.policies import SchemaCompatibilityStrategy as Strategy
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.server.schema_registry.comparers import COMPARERS
from pulsar_py.server.schema_registry.compatibility import check_consumer_schema, check_new_schema
from pulsar_py.server.schema_registry.definition import SchemaDefinition

A = {"name": "a", "type": "int"}
OPTIONAL = {"name": "b", "type": ["null", "string"], "default": None}
REQUIRED = {"name": "b", "type": "string"}


def record(*fields: dict[str, object], kind: int = Schema.Avro) -> SchemaDefinition:
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    return SchemaDefinition(kind, text.encode())


PLAIN, WITH_OPTIONAL, WITH_REQUIRED = record(A), record(A, OPTIONAL), record(A, REQUIRED)
CHANGES = {
    "adds optional": (PLAIN, WITH_OPTIONAL),
    "adds required": (PLAIN, WITH_REQUIRED),
    "drops optional": (WITH_OPTIONAL, PLAIN),
    "drops required": (WITH_REQUIRED, PLAIN),
}
REFUSED = {
    "BACKWARD": {"adds required"},
    "FORWARD": {"drops required"},
    "FULL": {"adds required", "drops required"},
}


def accepts(
    new: SchemaDefinition,
    history: list[SchemaDefinition],
    strategy: Strategy,
    check=check_new_schema,
) -> bool:
    try:
        check(new, history, strategy, COMPARERS)
    except IncompatibleSchemaError:
        return False
    return True


@pytest.mark.parametrize("kind", [Schema.Avro, Schema.Json, Schema.Protobuf])
@pytest.mark.parametrize("direction", REFUSED)
def test_avro_rules_in_each_direction(direction: str, kind: int) -> None:
    refused = {
        name
        for name, (old, new) in CHANGES.items()
        if not accepts(
            SchemaDefinition(kind, new.data),
            [SchemaDefinition(kind, old.data)],
            Strategy(direction),
        )
    }
    assert refused == REFUSED[direction]


@pytest.mark.parametrize("direction", REFUSED)
def test_transitive_strategies_look_at_all_versions(direction: str) -> None:
    # Each step fits the one before in both directions, the last does not fit the first.
    text, number = {"name": "b", "type": "string", "default": ""}, {"name": "b", "type": "int"}
    history = [record(A, text), record(A)]
    new = record(A, {**number, "default": 0})
    assert accepts(new, history, Strategy(direction))
    assert not accepts(new, history, Strategy(f"{direction}_TRANSITIVE"))


def test_a_refusal_names_the_field_and_the_strategy() -> None:
    text = "strategy BACKWARD: .* field b was not written, and has no default"
    with pytest.raises(IncompatibleSchemaError, match=text):
        check_new_schema(WITH_REQUIRED, [PLAIN], Strategy.BACKWARD, COMPARERS)


@pytest.mark.parametrize("strategy", Strategy)
def test_consumers_need_to_read_what_was_written(strategy: Strategy) -> None:
    always = strategy is Strategy.ALWAYS_COMPATIBLE
    never = strategy is Strategy.ALWAYS_INCOMPATIBLE
    assert accepts(WITH_OPTIONAL, [PLAIN], strategy, check_consumer_schema) is not never
    assert accepts(WITH_REQUIRED, [PLAIN], strategy, check_consumer_schema) is always


def native(root: str, message: str = "x") -> SchemaDefinition:
    value = {"fileDescriptorSet": message, "rootMessageTypeName": root}
    text = json.dumps({**value, "rootFileDescriptorName": "f.proto"})
    return SchemaDefinition(Schema.ProtobufNative, text.encode())


OTHERS = [each for each in Strategy if not each.value.startswith("ALWAYS")]


@pytest.mark.parametrize("strategy", OTHERS)
def test_of_protobuf_native_only_the_root_message_counts(strategy: Strategy) -> None:
    assert accepts(native("R", "other"), [native("R")], strategy)
    if strategy is not Strategy.UNDEFINED:  # it stands for FULL before it comes here
        assert not accepts(native("S"), [native("R")], strategy)


@pytest.mark.parametrize("strategy", Strategy)
def test_external_schemas_fit_each_other_always(strategy: Strategy) -> None:
    old, new = (SchemaDefinition(Schema.External, data) for data in (b"1", b""))
    assert accepts(new, [old], strategy)
    assert accepts(PLAIN, [old], strategy) is (strategy is Strategy.ALWAYS_COMPATIBLE)


def key_value(key: bytes, value: bytes, **types: str) -> SchemaDefinition:
    data = b"".join(struct.pack(">i", len(part)) + part for part in (key, value))
    properties = {"key.schema.type": "AVRO", "value.schema.type": "AVRO", **types}
    return SchemaDefinition(Schema.KeyValue, data, properties)


def test_key_and_value_are_compared_apart() -> None:
    old = key_value(PLAIN.data, PLAIN.data)
    for part in (0, 1):
        better, worse = [PLAIN.data] * 2, [PLAIN.data] * 2
        better[part], worse[part] = WITH_OPTIONAL.data, WITH_REQUIRED.data
        assert accepts(key_value(*better), [old], Strategy.FULL)
        assert not accepts(key_value(*worse), [old], Strategy.FULL)
    new = key_value(b"", PLAIN.data, **{"key.schema.type": "STRING"})
    with pytest.raises(IncompatibleSchemaError, match="the key was written as Avro"):
        check_new_schema(new, [old], Strategy.FULL, COMPARERS)
    separated = key_value(PLAIN.data, PLAIN.data, **{"kv.encoding.type": "SEPARATED"})
    assert accepts(separated, [old], Strategy.FULL)
