"""Decides whether a schema is compatible with a topic's history, by strategy (pure).

This module has the strategies and their meaning; `comparers` has the rules that compare two
definitions of one type. Where there are none, as for primitive types, any two are compatible.

Source: SchemaCompatibilityStrategy, SchemaRegistryServiceImpl.checkCompatible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pulsar_py.common.errors import IncompatibleSchemaError
from pulsar_py.common.policies import SchemaCompatibilityStrategy
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.server.schema_registry.comparers import AnyComparer, SchemaComparer
from pulsar_py.server.schema_registry.definition import SchemaDefinition

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


Comparers = Mapping[Schema.Type.ValueType, SchemaComparer]
_ANY = AnyComparer()


def checks_all(strategy: SchemaCompatibilityStrategy, *, is_consumer: bool = False) -> bool:
    """Whether all versions have to be known for a check, not the newest alone."""
    if is_consumer and strategy not in _CONSUMER_CHECKS_ALL:
        return False
    return strategy in _TRANSITIVE


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
        _check_type(new, history[-1])
        if new.type == Schema.External:
            return  # as in Pulsar: nobody here knows what its bytes mean
        raise IncompatibleSchemaError("the strategy ALWAYS_INCOMPATIBLE refuses every new schema")
    checked = history if strategy in _TRANSITIVE else history[-1:]
    for old in checked:
        _check_type(new, old)
        if strategy in _NEW_READS_OLD:
            _check_reads(
                new,
                old,
                reads="the new schema",
                wrote="an older one",
                strategy=strategy,
                comparers=comparers,
            )
        if strategy in _OLD_READS_NEW:
            _check_reads(
                old,
                new,
                reads="an older schema",
                wrote="the new one",
                strategy=strategy,
                comparers=comparers,
            )


def _check_reads(
    reader: SchemaDefinition,
    writer: SchemaDefinition,
    *,
    reads: str,
    wrote: str,
    strategy: SchemaCompatibilityStrategy,
    comparers: Comparers,
) -> None:
    problem = comparers.get(reader.type, _ANY).problem(reader=reader, writer=writer)
    if problem is not None:
        raise IncompatibleSchemaError(
            f"Error during schema compatibility check with strategy {strategy.value}: {reads} "
            f"can't read what {wrote} wrote: {problem}"
        )


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
    _check_reads(
        schema,
        latest,
        reads="the consumer's schema",
        wrote="the topic's",
        strategy=SchemaCompatibilityStrategy.BACKWARD,
        comparers=comparers,
    )


def _check_type(new: SchemaDefinition, old: SchemaDefinition) -> None:
    if new.type != old.type:
        raise IncompatibleSchemaError(
            f"Incompatible schema: exists schema type {Schema.Type.Name(old.type).upper()}, "
            f"new schema type {Schema.Type.Name(new.type).upper()}"
        )
