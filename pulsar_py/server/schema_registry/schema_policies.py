"""`SchemaPolicies`: what a topic's settings say of its schemas, without what checks these."""

from __future__ import annotations

from msgspec import Struct

from pulsar_py.common.policies import SchemaCompatibilityStrategy


class SchemaPolicies(Struct, frozen=True):
    """Policies of one topic's schemas. Comments give the names in broker.conf."""

    strategy: SchemaCompatibilityStrategy = SchemaCompatibilityStrategy.FULL
    is_auto_update_allowed: bool = True  # isAllowAutoUpdateSchemaEnabled
    is_validation_enforced: bool = False  # isSchemaValidationEnforced
