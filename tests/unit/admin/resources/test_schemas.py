"""Schemas over REST; recordings of the original have the common calls."""

from __future__ import annotations

import json

import pytest

from tests.unit.admin.resources.conftest import Admin

A = "/admin/v2/schemas/public/default/a"


def avro(*names: str, required: bool = False) -> dict[str, object]:
    fields = [{"name": name, "type": "string"} for name in names]
    if not required:
        fields = [{**field, "default": ""} for field in fields]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    return {"type": "AVRO", "schema": text, "properties": {}}


async def test_a_refusal_names_the_field(admin: Admin) -> None:
    assert await admin.status("POST", A + "/schema", avro("a")) == 200
    answer = await admin.call("POST", A + "/schema", avro("a", "b<", required=True))
    assert answer.status == 422
    answer = await admin.call("POST", A + "/schema", avro("a", "b", required=True))
    assert answer.status == 409
    assert b"field b was not written, and has no default" in answer.body


async def test_compatibility_is_said_without_storing(admin: Admin) -> None:
    await admin.call("POST", A + "/schema", avro("a"))
    for schema, fits in ((avro("a", "b"), True), (avro("b", required=True), False)):
        answer = await admin.call("POST", A + "/compatibility", schema)
        assert answer.status == 202
        assert json.loads(answer.body) == {
            "compatibility": fits,
            "schemaCompatibilityStrategy": "FULL",
        }
    assert len((await admin.get(A + "/schemas"))["getSchemaResponses"]) == 1


async def test_a_strategy_for_all_clusters_counts_beside_policies_of_this_one(admin: Admin) -> None:
    topic = "/admin/v2/persistent/public/default/a"
    await admin.call("PUT", topic)
    await admin.call("POST", A + "/schema", avro("a"))
    strategy = topic + "/schemaCompatibilityStrategy?isGlobal=true"
    assert await admin.status("PUT", strategy, "ALWAYS_COMPATIBLE") == 204
    assert await admin.status("POST", topic + "/maxProducers", 5) == 204
    answer = await admin.call("POST", A + "/compatibility", avro("b", required=True))
    assert json.loads(answer.body) == {
        "compatibility": True,
        "schemaCompatibilityStrategy": "ALWAYS_COMPATIBLE",
    }


async def test_an_administrator_may_upload_where_producers_may_not(admin: Admin) -> None:
    await admin.call("POST", "/admin/v2/namespaces/public/default/isAllowAutoUpdateSchema", False)
    assert await admin.status("POST", A + "/schema", avro("a")) == 200


async def test_key_and_value_are_read_back(admin: Admin) -> None:
    parts = {"key": json.loads(str(avro("k")["schema"])), "value": "text"}
    schema = {"type": "KEY_VALUE", "schema": json.dumps(parts), "properties": {"x": "y"}}
    assert await admin.status("POST", A + "/schema", schema) == 200
    found = await admin.get(A + "/schema")
    assert json.loads(found["data"]) == parts
    assert (found["type"], found["properties"]) == ("KEY_VALUE", {"x": "y"})


@pytest.mark.parametrize(
    "body", [{"type": "COBOL"}, {"schema": ""}, {"type": "KEY_VALUE", "schema": "{}"}, None]
)
async def test_what_is_no_schema_is_refused(admin: Admin, body: object) -> None:
    assert await admin.status("POST", A + "/schema", body) == 400
    assert await admin.status("GET", A + "/schema/first") == 404


async def test_versions_after_a_deletion_go_on(admin: Admin) -> None:
    for names in (("a",), ("a", "b")):
        await admin.call("POST", A + "/schema", avro(*names))
    assert (await admin.get(A + "/metadata"))["info"]["version"] == 1
    for version in (2, 3):
        answer = await admin.call("DELETE", A + "/schema")
        assert json.loads(answer.body) == {"version": version}
    assert await admin.status("GET", A + "/schema/0") == 404
    answer = await admin.call("POST", A + "/schema", {"type": "BYTES"})
    assert json.loads(answer.body) == {"version": {"version": 4}}
    assert (await admin.get(A + "/schema"))["type"] == "NONE"
    answer = await admin.call("DELETE", A + "/schema?force=true")
    assert json.loads(answer.body) == {"version": -1}
    assert (await admin.call("GET", A + "/metadata")).body == b""
