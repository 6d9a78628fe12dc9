"""schema_registry."""
