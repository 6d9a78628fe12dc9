"""What has no effect yet is in the tables, and what is in the tables has none."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsar_py.admin.api.all_routes import all_routes
from pulsar_py.admin.resources import topic_stats_json
from pulsar_py.admin.without_effect import (
    CALLS,
    FIELDS,
    PARTS,
    REFERENCE_PATH,
    STATISTICS,
    VALUES,
    not_implemented,
    render_reference,
)
from pulsar_py.metadata import documents
from pulsar_py.metadata.json_document import JsonDocument
from pulsar_py.proto import PulsarApi_pb2
from pulsar_py.standalone import Broker
from tests.package_source import ROOT, modules

SHOWN = {
    "ClusterData.peerClusterNames": "kept and shown, nothing is replicated",
    "NamespacePolicies.replication_clusters": "checked against the tenant, and shown",
    "NamespacePolicies.allowed_clusters": "the tenant's list is read under the same name",
    "TopicPolicies.replicationClusters": "the namespace's list is read under the same name",
}
"""Listed although an attribute of that name is read: why that is no effect."""


def keys() -> Iterator[tuple[str, str]]:
    """`Class.jsonName` and the attribute of every key of the documents with policies."""
    for document in vars(documents).values():
        if not (isinstance(document, type) and issubclass(document, JsonDocument)):
            continue
        for attribute in document.names():
            declared = getattr(document, attribute)
            yield f"{document.__name__}.{declared.json_name}", attribute


DOCUMENTS = {"NamespacePolicies", "TopicPolicies"}
"""Classes whose keys, named by the tables of the administration, are not read there."""


def read_attributes() -> set[str]:
    """Attributes that the broker and its administration read somewhere."""
    return {
        node.attr
        for module in modules()
        if module.name.startswith(("pulsar_py.server.", "pulsar_py.admin."))
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and not (isinstance(node.value, ast.Name) and node.value.id in DOCUMENTS)
    }


def test_a_stored_value_has_a_reader_or_is_listed() -> None:
    read = read_attributes()
    for name, attribute in keys():
        has_reader = attribute in read and name not in SHOWN
        assert has_reader or name in VALUES, (
            f"{name} is stored and nothing reads {attribute}: read it where it has its effect, "
            "policies in server/policies/effective_settings.py, or list it in VALUES of "
            "admin/without_effect.py"
        )
        assert not (has_reader and name in VALUES), f"{name} is read: take it off VALUES"


def test_the_tables_name_what_exists() -> None:
    assert set(VALUES) <= {name for name, _ in keys()}
    assert set(SHOWN) <= set(VALUES)
    for name in FIELDS:
        message, field = name.split(".")
        assert field in getattr(PulsarApi_pb2, message).DESCRIPTOR.fields_by_name
    source = Path(topic_stats_json.__file__).read_text()
    assert not [name for name in STATISTICS if f'"{name}"' not in source]
    assert all({**CALLS, **VALUES, **PARTS, **FIELDS, **STATISTICS}.values())


async def test_listed_calls_are_routes() -> None:
    async with Broker() as broker:
        routes = {f"{each.method} {each.template}" for each in all_routes(broker.service)}
    assert set(CALLS) <= routes


@pytest.mark.parametrize("call", CALLS)
def test_a_listed_call_is_answered_501_with_its_reason(call: str) -> None:
    answer = not_implemented(call)
    assert (answer.status, answer.reason) == (501, CALLS[call])


def test_only_listed_calls_are_answered_501() -> None:
    users = [
        module.name
        for module in modules()
        if module.name.startswith("pulsar_py.admin.")
        and "NOT_IMPLEMENTED" in module.path.read_text("utf-8")
    ]
    assert users == ["pulsar_py.admin.without_effect"]


def test_the_document_is_fresh() -> None:
    assert (ROOT / REFERENCE_PATH).read_text("utf-8") == render_reference(), "make docs"
