"""Schemas of topics: versions, storage, compatibility."""

from pulsar_py.server.schema_registry.compatibility import SchemaPolicies
from pulsar_py.server.schema_registry.definition import SchemaDefinition, StoredSchema
from pulsar_py.server.schema_registry.registry import SchemaRegistry

__all__ = ["SchemaDefinition", "SchemaPolicies", "SchemaRegistry", "StoredSchema"]
