"""Values to payloads and back, by schema: text, numbers, times, Avro, JSON, Protobuf, key-value.

Pure: no topics, no clock, no sockets. Third-party packages it may import: protobuf, and when a
record has to be coded fastavro.
"""

from pulsar_py.schema.schema import Schema
from pulsar_py.schema.schema_info import SchemaInfo, SchemaType

__all__ = ["Schema", "SchemaInfo", "SchemaType"]
