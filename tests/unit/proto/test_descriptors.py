"""The generated messages against the tables of the protocol, field by field."""

from __future__ import annotations

import csv
import importlib
import io
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor

RECORDINGS = Path(__file__).parents[2] / "recordings"
TYPES = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in descriptor_pb2.FieldDescriptorProto.Type.items()
}


def rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((RECORDINGS / name).read_text())))


FILES = rows("schema_files.csv")


def file_descriptor(name: str) -> FileDescriptor:
    module = importlib.import_module(f"pulsar_py.proto.{name.removesuffix('.proto')}_pb2")
    descriptor: FileDescriptor = module.DESCRIPTOR
    return descriptor


def all_messages(file: FileDescriptor) -> list[Descriptor]:
    """Depth first, in the order of declaration; without the entries of maps."""
    found: list[Descriptor] = []

    def visit(message: Descriptor) -> None:
        if message.GetOptions().map_entry:
            return
        found.append(message)
        for nested in message.nested_types:
            visit(nested)

    for message in file.message_types_by_name.values():
        visit(message)
    return found


def all_enums(file: FileDescriptor) -> list[EnumDescriptor]:
    nested = [enum for message in all_messages(file) for enum in message.enum_types]
    return list(file.enum_types_by_name.values()) + nested


def relative(full_name: str, package: str) -> str:
    return full_name.removeprefix(f"{package}.") if package else full_name


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def type_text(field: FieldDescriptor, package: str) -> str:
    if is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return f"map<{type_text(key, package)}|{type_text(value, package)}>"
    if field.message_type is not None:
        return relative(field.message_type.full_name, package)
    if field.enum_type is not None:
        return relative(field.enum_type.full_name, package)
    return TYPES[field.type]


def label_text(field: FieldDescriptor) -> str:
    if is_map(field):
        return "map"
    if field.is_repeated:
        return "repeated"
    return "required" if field.is_required else "optional"


def default_text(field: FieldDescriptor) -> str:
    if not field.has_default_value:
        return ""
    if field.enum_type is not None:
        return str(field.enum_type.values_by_number[field.default_value].name)
    return str(field.default_value).lower()


def options_text(field: FieldDescriptor) -> str:
    options = field.GetOptions()
    texts = []
    if options.HasField("packed"):
        texts.append(f"packed={str(options.packed).lower()}")
    if options.deprecated:
        texts.append("deprecated=true")
    return ";".join(texts)


def generated_row(field: FieldDescriptor, package: str) -> dict[str, str]:
    return {
        "field": field.name,
        "number": str(field.number),
        "label": label_text(field),
        "type": type_text(field, package),
        "default": default_text(field),
        "oneof": field.containing_oneof.name if field.containing_oneof is not None else "",
        "options": options_text(field),
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: file["file"])
def test_messages_are_those_of_the_table(file: dict[str, str]) -> None:
    descriptor = file_descriptor(file["file"])
    package = file["package"]
    assert descriptor.package == package

    generated: dict[str, Any] = {
        relative(message.full_name, package): sorted(
            (generated_row(field, package) for field in message.fields),
            key=lambda row: int(row["number"]),
        )
        for message in all_messages(descriptor)
    }

    expected: dict[str, list[dict[str, str]]] = {}
    for row in rows(file["csv"]):
        if row.pop("file") != file["file"]:
            continue
        fields = expected.setdefault(row.pop("message"), [])
        if row["field"]:
            fields.append(row)
    for fields in expected.values():
        fields.sort(key=lambda row: int(row["number"]))
    assert generated.keys() == expected.keys()
    for name, fields in expected.items():
        assert generated[name] == fields, name


@pytest.mark.parametrize("file", FILES, ids=lambda file: file["file"])
def test_enums_are_those_of_the_table(file: dict[str, str]) -> None:
    generated = {
        (relative(enum.full_name, file["package"]), value.name, value.number)
        for enum in all_enums(file_descriptor(file["file"]))
        for value in enum.values
    }

    expected = {
        (row["enum"], row["value_name"], int(row["number"]))
        for row in rows(file["enums_csv"])
        if row["file"] == file["file"]
    }
    assert generated == expected


@pytest.mark.parametrize("file", FILES, ids=lambda file: file["file"])
def test_imports_are_those_of_the_table(file: dict[str, str]) -> None:
    imported = [one.name for one in file_descriptor(file["file"]).dependencies]

    assert imported == file["imports"].split()


def test_every_source_is_in_the_table() -> None:
    sources = Path(__file__).parents[3] / "proto"

    theirs = {path.name for path in sources.glob("*.proto") if "PulsarPy" not in path.name}
    assert theirs == {file["file"] for file in FILES}


def test_our_own_fields_are_none_of_pulsars() -> None:
    """What we add stands in its messages, so that it has to skip our numbers."""
    ours = file_descriptor("PulsarPyCursor.proto").message_types_by_name["CursorExtension"]
    theirs = file_descriptor("MLDataFormats.proto").message_types_by_name
    for name in ("PositionInfo", "ManagedCursorInfo"):
        assert max(field.number for field in theirs[name].fields) < 1000
    assert min(field.number for field in ours.fields) > 1000


def test_a_marked_index_of_schemas_is_pulsars_with_fields_of_ours() -> None:
    ours = file_descriptor("PulsarPySchema.proto").message_types_by_name
    theirs = file_descriptor("SchemaStorageFormat.proto").message_types_by_name
    for name in ("IndexEntry", "SchemaLocator"):
        own = {field.name: field.number for field in ours[f"Marked{name}"].fields}
        known = {field.name: field.number for field in theirs[name].fields}
        assert known.items() <= own.items()
        assert all(own[added] > 1000 for added in own.keys() - known.keys())


def test_the_fields_that_a_broker_reads_are_those_of_an_entrys_metadata() -> None:
    """Of the same numbers and types; lists are left out, and one is known by its last element."""
    ours = file_descriptor("PulsarPyEntry.proto").message_types_by_name["EntryFields"]
    theirs = file_descriptor("PulsarApi.proto").message_types_by_name["MessageMetadata"]
    kinds = {theirs.fields_by_name["compression"].type: FieldDescriptor.TYPE_INT32}
    for field in ours.fields:
        original = theirs.fields_by_name[field.name]
        assert field.number == original.number
        assert not field.is_repeated
        if field.name == "encryption_keys":
            assert original.is_repeated
            continue
        assert field.type == kinds.get(original.type, original.type)
        assert field.is_required == original.is_required
        assert field.default_value == original.default_value


def test_module_level_enum_values_and_messages_are_there() -> None:
    from pulsar_py.proto import PulsarApi_pb2 as api  # noqa: PLC0415 - what the test is about

    assert api.ServerError.Name(25) == "ProducerFenced"
    assert api.CompressionType.Value("ZSTD") == api.ZSTD == 3
    assert api.CommandSubscribe.Key_Shared == 3
    assert api.BaseCommand.DESCRIPTOR.full_name == "pulsar.proto.BaseCommand"
