"""Decides whether a schema is compatible with a topic's history, by strategy (pure).

This module has the strategies and their meaning. A `SchemaComparer` has the rules that compare two
definitions of one type. This version has only `SameTypeComparer`, by which any two definitions of
one type are compatible, as they are in Apache Pulsar for primitive types.

Source: SchemaCompatibilityStrategy, SchemaRegistryServiceImpl.checkCompatible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pulsar_py.common.errors import IncompatibleSchemaError
from pulsar_py.common.policies import SchemaCompatibilityStrategy
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.server.schema_registry.definition import SchemaDefinition


@dataclass(frozen=True, slots=True)
class SchemaPolicies:
    """Policies of one topic's schemas. Comments give the names in broker.conf."""

    strategy: SchemaCompatibilityStrategy = SchemaCompatibilityStrategy.FULL
    is_auto_update_allowed: bool = True  # isAllowAutoUpdateSchemaEnabled
    is_validation_enforced: bool = False  # isSchemaValidationEnforced


_TRANSITIVE = frozenset(
    {
        SchemaCompatibilityStrategy.BACKWARD_TRANSITIVE,
        SchemaCompatibilityStrategy.FORWARD_TRANSITIVE,
        SchemaCompatibilityStrategy.FULL_TRANSITIVE,
    }
)
_NEW_READS_OLD = frozenset(
    {
        SchemaCompatibilityStrategy.BACKWARD,
        SchemaCompatibilityStrategy.BACKWARD_TRANSITIVE,
        SchemaCompatibilityStrategy.FULL,
        SchemaCompatibilityStrategy.FULL_TRANSITIVE,
    }
)
_OLD_READS_NEW = frozenset(
    {
        SchemaCompatibilityStrategy.FORWARD,
        SchemaCompatibilityStrategy.FORWARD_TRANSITIVE,
        SchemaCompatibilityStrategy.FULL,
        SchemaCompatibilityStrategy.FULL_TRANSITIVE,
    }
)
_CONSUMER_CHECKS_ALL = frozenset(
    {
        SchemaCompatibilityStrategy.BACKWARD_TRANSITIVE,
        SchemaCompatibilityStrategy.FULL_TRANSITIVE,
        SchemaCompatibilityStrategy.ALWAYS_INCOMPATIBLE,
    }
)


class SchemaComparer(Protocol):
    """Compares two definitions of one type."""

    def can_read(self, *, reader: SchemaDefinition, writer: SchemaDefinition) -> bool:
        """Whether data written with `writer` can be read with `reader`."""


class SameTypeComparer:
    """Every definition of a type can read every other one; for types without rules."""

    def can_read(self, *, reader: SchemaDefinition, writer: SchemaDefinition) -> bool:
        """Whether the types are the same."""
        return reader.type == writer.type


Comparers = Mapping[Schema.Type.ValueType, SchemaComparer]
_SAME_TYPE = SameTypeComparer()


def check_new_schema(
    new: SchemaDefinition,
    history: Sequence[SchemaDefinition],
    strategy: SchemaCompatibilityStrategy,
    comparers: Comparers,
) -> None:
    """Check that `new` is compatible with `history` (oldest first, at least one).

    Raises:
        IncompatibleSchemaError: It is not; the message says which rule forbids it.
    """
    if strategy is SchemaCompatibilityStrategy.ALWAYS_COMPATIBLE:
        return
    if strategy is SchemaCompatibilityStrategy.ALWAYS_INCOMPATIBLE:
        raise IncompatibleSchemaError("the strategy ALWAYS_INCOMPATIBLE refuses every new schema")
    checked = history if strategy in _TRANSITIVE else history[-1:]
    comparer = comparers.get(new.type, _SAME_TYPE)
    for old in checked:
        _check_type(new, old)
        if strategy in _NEW_READS_OLD and not comparer.can_read(reader=new, writer=old):
            raise IncompatibleSchemaError(f"{strategy.value}: the new schema can't read old data")
        if strategy in _OLD_READS_NEW and not comparer.can_read(reader=old, writer=new):
            raise IncompatibleSchemaError(f"{strategy.value}: the old schema can't read new data")


def check_consumer_schema(
    schema: SchemaDefinition,
    history: Sequence[SchemaDefinition],
    strategy: SchemaCompatibilityStrategy,
    comparers: Comparers,
) -> None:
    """Check that a consumer with `schema` may read a topic of this history (at least one).

    Raises:
        IncompatibleSchemaError: It may not.
    """
    if strategy is SchemaCompatibilityStrategy.ALWAYS_COMPATIBLE:
        return
    if strategy in _CONSUMER_CHECKS_ALL:
        check_new_schema(schema, history, strategy, comparers)
        return
    latest = history[-1]
    _check_type(schema, latest)
    if not comparers.get(schema.type, _SAME_TYPE).can_read(reader=schema, writer=latest):
        raise IncompatibleSchemaError("the consumer's schema can't read the topic's latest schema")


def _check_type(new: SchemaDefinition, old: SchemaDefinition) -> None:
    if new.type != old.type:
        raise IncompatibleSchemaError(
            f"the schema has type {Schema.Type.Name(new.type)}, "
            f"expected the type of the topic's schema, {Schema.Type.Name(old.type)}"
        )
