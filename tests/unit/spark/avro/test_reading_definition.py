"""Definitions to read by name the branch that was written."""

from __future__ import annotations

from typing import Any

from pulsar_py.schema.avro.avro_codec import AvroReader, AvroWriter
from pulsar_py.schema.avro.avro_nodes import avro_node
from pulsar_py.spark.avro.reading_definition import definition_for_reading


def record(*types: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    fields = [{"name": f"f{index}", "type": each} for index, each in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields, **more}


def test_branches_of_unions_are_records_of_one_field() -> None:
    node = avro_node(record(["null", "double", "long"], ["null", "string"], namespace="n"))
    definition, names = definition_for_reading(node)
    assert definition["fields"] == [
        {
            "name": "f0",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "n.R_1",
                    "fields": [{"name": "value", "type": "double"}],
                },
                {"type": "record", "name": "n.R_2", "fields": [{"name": "value", "type": "long"}]},
            ],
        },
        {"name": "f1", "type": ["null", "string"]},
    ]
    assert names == {id(node.children[0]): ["n.R_1", "n.R_2"]}


def test_each_union_has_names_of_its_own_for_a_type_of_several() -> None:
    inner = record("int", name="I")
    node = avro_node(record([inner, "string"], ["null", "string", "I"], ["null", "I"]))
    _, names = definition_for_reading(node)
    first, second, _ = node.children
    assert first.others[0] is second.others[1]
    assert set(names) == {id(first), id(second)}
    assert [len(each) for each in names.values()] == [2, 2]
    assert len({*names[id(first)], *names[id(second)]}) == 4


def test_payloads_of_the_one_are_payloads_of_the_other() -> None:
    names = [record("int", name="R_1"), {"type": "enum", "name": "a.E", "symbols": ["P"]}]
    definition = record(["long", *names], "R_1", {"type": "map", "values": ["double", "a.E"]})
    value = {"f0": 5, "f1": {"f0": 7}, "f2": {"k": "P"}}
    node = avro_node(definition)
    reading, names = definition_for_reading(node)
    found = AvroReader(reading).read(AvroWriter(definition).write(value))
    assert found["f0"] == (names[id(node.children[0])][0], {"value": 5})
    assert found["f1"] == {"f0": 7}
    assert found["f2"]["k"] == (names[id(node.children[2].children[0])][1], {"value": "P"})
