"""Schemas of topics: versions, storage, compatibility.

In: definitions from PRODUCER, SUBSCRIBE, GET_OR_CREATE_SCHEMA and REST. Out: version bytes, or a
refusal with the rule that forbids the definition. `SchemaRegistry` is the only way in.
"""

from pulsar_py.server.schema_registry.definition import SchemaDefinition, StoredSchema
from pulsar_py.server.schema_registry.registry import SchemaRegistry
from pulsar_py.server.schema_registry.schema_policies import SchemaPolicies
from pulsar_py.server.schema_registry.storage import SchemaPlace

__all__ = ["SchemaDefinition", "SchemaPlace", "SchemaPolicies", "SchemaRegistry", "StoredSchema"]
