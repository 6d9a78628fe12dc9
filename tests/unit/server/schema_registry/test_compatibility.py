from __future__ import annotations

import pytest

from pulsar_py.common.errors import IncompatibleSchemaError
from pulsar_py.common.policies import SchemaCompatibilityStrategy as Strategy
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.server.schema_registry.compatibility import (
    check_consumer_schema,
    check_new_schema,
)
from pulsar_py.server.schema_registry.definition import SchemaDefinition


def number(value: int) -> SchemaDefinition:
    return SchemaDefinition(Schema.Avro, str(value).encode())


class ReadsSmaller:
    """A made-up rule: a schema reads what a smaller or equal one wrote."""

    def problem(self, *, reader: SchemaDefinition, writer: SchemaDefinition) -> str | None:
        return None if int(reader.data) >= int(writer.data) else "it is larger"


RULES = {Schema.Avro: ReadsSmaller()}
HISTORY = [number(5), number(3)]


def allowed(new: int, strategy: Strategy, check: object = check_new_schema) -> bool:
    try:
        check(number(new), HISTORY, strategy, RULES)  # type: ignore[operator]
    except IncompatibleSchemaError:
        return False
    return True


@pytest.mark.parametrize(
    ("strategy", "fitting"),
    [
        (Strategy.ALWAYS_COMPATIBLE, [2, 3, 4, 5, 6]),
        (Strategy.ALWAYS_INCOMPATIBLE, []),
        (Strategy.BACKWARD, [3, 4, 5, 6]),
        (Strategy.BACKWARD_TRANSITIVE, [5, 6]),
        (Strategy.FORWARD, [2, 3]),
        (Strategy.FORWARD_TRANSITIVE, [2, 3]),
        (Strategy.FULL, [3]),
        (Strategy.FULL_TRANSITIVE, []),
    ],
)
def test_strategies_say_which_schemas_are_checked_and_how(
    strategy: Strategy, fitting: list[int]
) -> None:
    assert [new for new in range(2, 7) if allowed(new, strategy)] == fitting


@pytest.mark.parametrize(
    ("strategy", "fitting"),
    [
        (Strategy.ALWAYS_COMPATIBLE, [2, 3, 4, 5]),
        (Strategy.FORWARD, [3, 4, 5]),
        (Strategy.FULL, [3, 4, 5]),
        (Strategy.BACKWARD_TRANSITIVE, [5]),
        (Strategy.ALWAYS_INCOMPATIBLE, []),
    ],
)
def test_consumers_must_read_the_latest(strategy: Strategy, fitting: list[int]) -> None:
    found = [new for new in range(2, 6) if allowed(new, strategy, check_consumer_schema)]
    assert found == fitting


def test_another_type_never_fits_unless_everything_does() -> None:
    text = SchemaDefinition(Schema.String, b"")
    check_new_schema(text, HISTORY, Strategy.ALWAYS_COMPATIBLE, {})
    with pytest.raises(
        IncompatibleSchemaError, match="exists schema type AVRO, new schema type STRING"
    ):
        check_new_schema(text, HISTORY, Strategy.BACKWARD, {})
    with pytest.raises(IncompatibleSchemaError):
        check_consumer_schema(text, HISTORY, Strategy.BACKWARD, {})


def test_types_without_rules_fit_themselves() -> None:
    check_new_schema(number(1), HISTORY, Strategy.FULL, {})
