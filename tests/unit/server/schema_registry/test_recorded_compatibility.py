"""What Apache Pulsar 4.2.4 answered of 513 schemas and histories, by each of eight strategies.

`tests/schema_pairs.py` asks again. Where ours differs, the reason is in ADR 14.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pulsar_py.common.errors import IncompatibleSchemaError
from pulsar_py.common.policies import SchemaCompatibilityStrategy as Strategy
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.server.schema_registry.comparers import COMPARERS
from pulsar_py.server.schema_registry.compatibility import check_new_schema
from pulsar_py.server.schema_registry.definition import SchemaDefinition
from tests.schema_pairs import STRATEGIES, Case, cases

PATH = Path(__file__).parents[3] / "recordings" / "schema_compatibility.json"
RECORDED = [
    (Case(name, kind, tuple(history), new), said)
    for name, kind, history, new, said in json.loads(PATH.read_text(encoding="utf-8"))
]
KINDS = {
    "AVRO": Schema.Avro,
    "JSON": Schema.Json,
    "PROTOBUF": Schema.Protobuf,
    "PROTOBUF_NATIVE": Schema.ProtobufNative,
    "EXTERNAL": Schema.External,
    "STRING": Schema.String,
}


def answers(case: Case, *, kind: str | None = None) -> str:
    """Ours: a letter a strategy."""
    number = KINDS[kind or case.kind]
    new = SchemaDefinition(number, case.new.encode())
    # A topic stores an equal schema once.
    history = [SchemaDefinition(number, text.encode()) for text in dict.fromkeys(case.history)]
    return "".join(answer(new, history, Strategy(name)) for name in STRATEGIES)


def answer(new: SchemaDefinition, history: list[SchemaDefinition], strategy: Strategy) -> str:
    try:
        check_new_schema(new, history, strategy, COMPARERS)
    except IncompatibleSchemaError:
        return "n"
    return "y"


def loses_symbols(case: Case) -> bool:
    """Whether an enumeration of one version lacks a symbol of another's."""
    found = [re.findall(r'"symbols": \[.*?\]', text) for text in (*case.history, case.new)]
    return len({frozenset(each) for each in found}) > 1 and any(found)


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"PROTOBUF"}))
def test_the_answers_are_those_of_apache_pulsar(kind: str) -> None:
    different = {}
    for case, said in RECORDED:
        if case.kind != kind:
            continue
        # What the topic has is answered without a check, whatever the strategy.
        end = -1 if case.new in case.history else None
        if answers(case)[:end] != said[:end] and not loses_symbols(case):
            different[case.name] = answers(case), said
    assert different == {}


def test_an_enumeration_that_lacks_a_symbol_is_refused_by_ours_alone() -> None:
    """Ours never accepts what Apache Pulsar refuses."""
    compared = [
        (answers(case), said)
        for case, said in RECORDED
        if loses_symbols(case) and case.kind in ("AVRO", "JSON") and case.new not in case.history
    ]
    pairs = [pair for ours, said in compared for pair in zip(ours, said, strict=True)]
    assert ("y", "n") not in pairs
    assert ("n", "y") in pairs


def test_protobuf_is_compared_as_avro_is_and_by_apache_pulsar_not_at_all() -> None:
    protobuf = [(case, said) for case, said in RECORDED if case.kind == "PROTOBUF"]
    assert {said[:-1] for _, said in protobuf} == {"y" * 7}
    assert all(answers(case) == answers(case, kind="AVRO") for case, _ in protobuf)
    assert len({answers(case) for case, _ in protobuf}) > 4


def test_the_recording_is_of_the_cases_that_are_made_now() -> None:
    assert [case.name for case, _ in RECORDED] == [case.name for case in cases()]
