"""Converts descriptors of Protobuf messages to the definitions that brokers store (pure).

    PROTOBUF         the Avro schema that Java's avro-protobuf derives from the message's class
    PROTOBUF_NATIVE  {"fileDescriptorSet": "<Base64>", "rootMessageTypeName": "package.Message",
                      "rootFileDescriptorName": "path/file.proto"}

Both have the property `__PARSING_INFO__`, a JSON list of the fields, as in Java's client. A name in
Avro is that of the Java class: its package, the outer class unless `java_multiple_files`, and the
enclosing messages, joined with `$`.

Source: ProtobufSchema and ProtobufNativeSchemaUtils in Pulsar's Java client; what Apache Pulsar
4.2.4 and Avro 1.12 make of the messages in google.protobuf.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.common.foreign_json import MAX_DEFINITION_DEPTH, parse_json
from pulsar_py.schema.values.value_types import AvroJson

if TYPE_CHECKING:
    from google.protobuf.descriptor import (
        Descriptor,
        EnumDescriptor,
        FieldDescriptor,
        FileDescriptor,
    )

__all__ = [
    "avro_definition",
    "native_definition",
    "parse_native_definition",
    "parsing_properties",
]

PARSING_INFO: Final = "__PARSING_INFO__"

# FieldDescriptor's numbers: CPPTYPE_..., TYPE_...
_INT32, _INT64, _UINT32, _UINT64, _DOUBLE, _FLOAT, _BOOL, _ENUM, _STRING, _MESSAGE = range(1, 11)
_TYPE_BYTES: Final = 12
_AVRO_NAMES: Final[Mapping[int, AvroJson]] = {
    _INT32: "int",
    _UINT32: "int",
    _INT64: "long",
    _UINT64: "long",
    _DOUBLE: "double",
    _FLOAT: "float",
    _BOOL: "boolean",
}


def avro_definition(descriptor: Descriptor) -> bytes:
    """The definition of a PROTOBUF schema."""
    definition = _AvroNames().record(descriptor, None)
    return json.dumps(definition, separators=(",", ":")).encode()


class _AvroNames:
    """Derives one definition; each message and enumeration is defined at its first use."""

    def __init__(self) -> None:
        self._defined: set[str] = set()

    def record(self, descriptor: Descriptor, namespace: str | None) -> AvroJson:
        own = _namespace(descriptor)
        head = self._head("record", descriptor, own, namespace)
        if isinstance(head, str):
            return head
        fields = []
        for each in descriptor.fields:
            field: dict[str, AvroJson] = {"name": each.name, "type": self._field(each, own)}
            if not _is_required(each):
                field["default"] = _default(each)
            fields.append(field)
        return head | {"fields": fields}

    def _enum(self, descriptor: EnumDescriptor, namespace: str | None) -> AvroJson:
        head = self._head("enum", descriptor, _namespace(descriptor), namespace)
        if isinstance(head, str):
            return head
        return head | {"symbols": [each.name for each in descriptor.values]}

    def _head(
        self,
        kind: str,
        descriptor: Descriptor | EnumDescriptor,
        own: str,
        namespace: str | None,
    ) -> dict[str, AvroJson] | str:
        name = f"{own}.{descriptor.name}"
        if name in self._defined:
            return descriptor.name if own == namespace else name
        self._defined.add(name)
        head: dict[str, AvroJson] = {"type": kind, "name": descriptor.name}
        if own != namespace:
            head["namespace"] = own
        return head

    def _field(self, field: FieldDescriptor, namespace: str) -> AvroJson:
        if field.is_repeated:
            return {"type": "array", "items": self._single(field, namespace)}
        return self._single(field, namespace)

    def _single(self, field: FieldDescriptor, namespace: str) -> AvroJson:
        if field.cpp_type == _STRING:
            if field.type == _TYPE_BYTES:
                return "bytes"
            return {"type": "string", "avro.java.string": "String"}
        if field.enum_type is not None:
            return self._enum(field.enum_type, namespace)
        if field.message_type is not None:
            record = self.record(field.message_type, namespace)
            is_optional = not _is_required(field) and not field.is_repeated
            return ["null", record] if is_optional else record
        return _AVRO_NAMES[field.cpp_type]


def _is_required(field: FieldDescriptor) -> bool:
    return bool(field.is_required)


def _default(field: FieldDescriptor) -> AvroJson:
    if field.is_repeated:
        return []
    if field.cpp_type == _MESSAGE:
        return None
    if field.enum_type is not None:
        return field.enum_type.values_by_number[field.default_value].name
    value = field.default_value
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _namespace(descriptor: Descriptor | EnumDescriptor) -> str:
    """The Java package, outer class and enclosing classes of a message."""
    file = descriptor.file
    options = file.GetOptions()
    package = options.java_package or file.package
    around = []
    outer = descriptor.containing_type
    while outer is not None:
        around.append(outer.name)
        outer = outer.containing_type
    if not options.java_multiple_files:
        around.append(options.java_outer_classname or _outer_class(file.name))
    classes = "$".join(reversed(around))
    return ".".join(each for each in (package, classes) if each)


def _outer_class(path: str) -> str:
    """`dir/my_file.proto` -> `MyFile`."""
    stem = path.rpartition("/")[2].removesuffix(".proto")
    return "".join(part[:1].upper() + part[1:] for part in stem.replace("-", "_").split("_"))


def native_definition(descriptor: Descriptor) -> bytes:
    """The definition of a PROTOBUF_NATIVE schema: the message's file and all it imports."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet  # noqa: PLC0415 - at first use

    files: dict[str, FileDescriptor] = {}
    _collect(descriptor.file, files)
    file_set = FileDescriptorSet()
    for file in files.values():
        file.CopyToProto(file_set.file.add())
    definition = {
        "fileDescriptorSet": base64.b64encode(file_set.SerializeToString()).decode(),
        "rootMessageTypeName": descriptor.full_name,
        "rootFileDescriptorName": descriptor.file.name,
    }
    return json.dumps(definition, separators=(",", ":")).encode()


def _collect(file: FileDescriptor, files: dict[str, FileDescriptor]) -> None:
    if file.name not in files:
        files[file.name] = file
        for each in file.dependencies:
            _collect(each, files)


def parsing_properties(descriptor: Descriptor) -> dict[str, str]:
    """The properties that Java's client stores with either definition."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto  # noqa: PLC0415 - at first use

    kinds = {int(number): name for name, number in FieldDescriptorProto.Type.items()}
    info = [
        {
            "number": each.number,
            "name": each.name,
            "type": kinds[each.type].removeprefix("TYPE_"),
            "label": _label(each),
            "definition": None,
        }
        for each in descriptor.fields
    ]
    return {PARSING_INFO: json.dumps(info, separators=(",", ":"))}


def _label(field: FieldDescriptor) -> str:
    if field.is_repeated:
        return "LABEL_REPEATED"
    return "LABEL_REQUIRED" if _is_required(field) else "LABEL_OPTIONAL"


def parse_native_definition(data: bytes) -> Any:  # Any: a class made at run time
    """The message class of a PROTOBUF_NATIVE definition, in a pool of its own.

    Raises:
        SchemaSerializationError: The definition is not valid.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorSet  # noqa: PLC0415 - at first use
    from google.protobuf.descriptor_pool import DescriptorPool  # noqa: PLC0415 - at first use
    from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415 - at first use

    try:
        definition = parse_json(data, max_depth=MAX_DEFINITION_DEPTH)
        file_set = FileDescriptorSet.FromString(base64.b64decode(definition["fileDescriptorSet"]))
        by_name = {each.name: each for each in file_set.file}
        pool = DescriptorPool()
        _add(pool, definition["rootFileDescriptorName"], by_name, set())
        descriptor = pool.FindMessageTypeByName(definition["rootMessageTypeName"])
        return GetMessageClass(descriptor)
    except Exception as error:  # protobuf raises all kinds, DecodeError and TypeError among them
        raise SchemaSerializationError(
            f"not a PROTOBUF_NATIVE definition: {error!r:.300}"
        ) from error


def _add(pool: Any, name: str, files: Mapping[str, Any], done: set[str]) -> None:
    """Add a file to the pool, after those that it imports."""
    if name in done:
        return
    done.add(name)
    file = files[name]
    for each in file.dependency:
        _add(pool, each, files, done)
    pool.Add(file)
