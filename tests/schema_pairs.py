"""Pairs of schemas and what Apache Pulsar says of them, by each strategy.

`python -m tests.schema_pairs http://127.0.0.1:8080 FILE` asks a broker that runs (any strategy's
answer comes from `.../compatibility`) and writes a recording; `schema_compatibility.json` under
`tests/recordings` was asked of Apache Pulsar 4.2.4. The cases are the same in each run: rules one
by one, and random changes of random records after them.
"""

from __future__ import annotations

import base64
import copy
import http.client
import json
import random
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from google.protobuf.descriptor_pb2 import (
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

STRATEGIES = (
    "BACKWARD",
    "FORWARD",
    "FULL",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "FULL_TRANSITIVE",
    "ALWAYS_COMPATIBLE",
    "ALWAYS_INCOMPATIBLE",
)
RANDOM_CASES = 260
PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")

Json = Any  # a definition: any value of JSON


@dataclass(frozen=True)
class Case:
    """A topic's versions, oldest first, and a schema that somebody wants to add."""

    name: str
    kind: str
    history: tuple[str, ...]
    new: str


def record(*fields: Json, name: str = "R", **more: Json) -> Json:
    """The definition of a record."""
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, kind: Json, **more: Json) -> Json:
    """The definition of a field."""
    return {"name": name, "type": kind, **more}


def _of(kind: Json) -> Json:
    return record(field("f", kind))


def _enum(*symbols: str, name: str = "E", **more: Json) -> Json:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def _fixed(size: int, name: str = "F", **more: Json) -> Json:
    return {"type": "fixed", "name": name, "size": size, **more}


def _rules() -> Iterator[tuple[str, Json, Json]]:
    """A name, the old definition and the new one."""
    for old in PRIMITIVES:
        for new in PRIMITIVES:
            yield f"{old} to {new}", _of(old), _of(new)
    a, b = field("a", "int"), field("b", "string")
    b_default, b_null = (
        field("b", "string", default=""),
        field("b", ["null", "string"], default=None),
    )
    nullable = field("b", ["null", "string"])
    for name, one, other in (
        ("required", b, None),
        ("with default", b_default, None),
        ("null by default", b_null, None),
        ("nullable without default", nullable, None),
        ("default given", b, b_default),
        ("default taken to null", b_default, b_null),
    ):
        yield f"a field: {name}", record(a, one), record(a, *([other] if other else ()))
    yield "order", record(a, b), record(b, a)
    yield "renamed", record(a, b), record(a, field("c", "string"))
    yield "renamed with alias", record(a, b), record(a, field("c", "string", aliases=["b"]))
    yield "alias of two", record(a, b), record(a, b, field("c", "string", aliases=["b"]))
    yield "alias, other type", record(a, b), record(a, field("c", "int", aliases=["b"]))
    yield "alias, promoted", record(a, b), record(b, field("c", "long", aliases=["a"]))
    yield "record renamed", record(a), record(a, name="S")
    yield "record renamed with alias", record(a), record(a, name="S", aliases=["R"])
    yield "record's namespace", record(a, namespace="x"), record(a, namespace="y")
    yield "record given a namespace", record(a), record(a, namespace="y")
    for name, inner, other in (
        ("record", record(a, name="I"), record(a, name="J")),
        ("enum", _enum("A", "B"), _enum("A", "B", name="G")),
        ("fixed", _fixed(4), _fixed(4, "G")),
    ):
        yield f"inner {name} renamed", _of(inner), _of(other)
        alias = {**other, "aliases": [inner["name"]]}
        yield f"inner {name} renamed with alias", _of(inner), _of(alias)
        yield f"inner {name}'s namespace", _of(inner), _of({**inner, "namespace": "x.y"})
        yield (
            f"inner {name}'s two namespaces",
            _of({**inner, "namespace": "x"}),
            _of({**inner, "namespace": "y"}),
        )
        yield f"nullable {name} renamed", _of(["null", inner]), _of(["null", other])
        yield f"nullable {name} renamed with alias", _of(["null", inner]), _of(["null", alias])
        yield (
            f"nullable {name}'s namespace",
            _of(["null", inner]),
            _of(["null", {**inner, "namespace": "x"}]),
        )
        yield f"{name} became nullable", _of(inner), _of(["null", inner])
        yield f"list of renamed {name}", _of(_list(inner)), _of(_list(other))
        yield f"{name} to string", _of(inner), _of("string")
    yield "enum more symbols", _of(_enum("A", "B")), _of(_enum("A", "B", "C"))
    yield "enum other order", _of(_enum("A", "B")), _of(_enum("B", "A"))
    yield "enum more with default", _of(_enum("A", "B")), _of(_enum("A", "B", "C", default="A"))
    yield "enum fewer with default", _of(_enum("A", "B", "C")), _of(_enum("A", default="A"))
    yield "enum none alike", _of(_enum("A")), _of(_enum("B"))
    yield "enum in a union", _of(["null", _enum("A")]), _of(["null", _enum("A", "B")])
    yield "fixed size", _of(_fixed(4)), _of(_fixed(8))
    yield "fixed to bytes", _of(_fixed(4)), _of("bytes")
    yield "nullable fixed size", _of(["null", _fixed(4)]), _of(["null", _fixed(8)])
    branches: Json
    read_as: Json
    for number, (branches, read_as) in enumerate(
        (
            (["null", "int"], "int"),
            (["null", "int"], ["null", "long"]),
            (["null", "int"], ["int", "null"]),
            (["int", "string"], "string"),
            (["int", "long"], "long"),
            (["int", "long"], "double"),
            (["int", "float"], ["double"]),
            (["string", "bytes"], "string"),
            (["null"], "null"),
            (["null", "int"], ["null", "int", "string"]),
            (["null", "string"], ["null", "bytes"]),
            ("int", ["string", "long"]),
            ("int", ["null", "boolean"]),
            (["null", record(a, name="I")], ["null", record(a, b, name="I")]),
            (["null", record(a, name="I")], ["null", record(a, b_default, name="I")]),
            (["null", record(a, name="I")], ["null", record(a, b_default, name="J")]),
            (record(a, name="I"), ["null", record(a, b_default, name="J")]),
            (record(a, name="I"), ["null", record(b, name="K"), record(a, name="I")]),
        )
    ):
        yield f"union {number}", _of(branches), _of(read_as)
    for shape in (_list, _map):
        yield f"{shape.__name__} promoted", _of(shape("int")), _of(shape("long"))
        yield f"{shape.__name__} unlike", _of(shape("int")), _of(shape("string"))
        yield f"{shape.__name__} nullable", _of(shape("int")), _of(shape(["null", "int"]))
        grown = shape(record(a, b_default, name="I"))
        yield f"{shape.__name__} of records", _of(shape(record(a, name="I"))), _of(grown)
    yield "list to map", _of(_list("int")), _of(_map("int"))
    chain = record(field("v", "int"), field("next", ["null", "R"], default=None))
    yield (
        "recursion promoted",
        chain,
        record(field("v", "long"), field("next", ["null", "R"], default=None)),
    )
    yield (
        "recursion unlike",
        chain,
        record(field("v", "string"), field("next", ["null", "R"], default=None)),
    )
    yield (
        "recursion grown",
        chain,
        record(field("v", "int"), b_default, field("next", ["null", "R"], default=None)),
    )
    yield "recursion ended", chain, record(field("v", "int"))
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    yield "logical millis to micros", _of(millis), _of(micros)
    yield "logical taken", _of(millis), _of("long")
    yield "logical from int", _of("int"), _of(millis)
    yield "decimal scale", _of(decimal), _of({**decimal, "precision": 9, "scale": 4})
    yield "doc and order", _of("int"), record(field("f", "int", doc="of f", order="ignore"))


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _map(values: Json) -> Json:
    return {"type": "map", "values": values}


class _Random:
    """Random records and random changes of them."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def kind(self, depth: int) -> Json:  # noqa: PLR0911 - one a kind
        chance = self._chance
        if depth == 0 or chance.random() < 0.4:
            return chance.choice(PRIMITIVES[1:])
        match chance.randrange(6):
            case 0:
                return _enum(*chance.sample("ABCD", chance.randint(1, 4)), name=self._name())
            case 1:
                return _fixed(chance.choice((4, 8)), self._name())
            case 2:
                return _list(self.kind(depth - 1))
            case 3:
                return _map(self.kind(depth - 1))
            case 4:
                return self.record(depth - 1, self._name())
            case _:
                return ["null", self.kind(0)] if chance.random() < 0.5 else ["int", "string"]

    def _name(self) -> str:
        self._names += 1
        return f"N{self._names}"

    def top(self) -> Json:
        self._names = 0
        return self.record(2, "R")

    def record(self, depth: int, name: str) -> Json:
        fields = []
        for letter in self._chance.sample("abcde", self._chance.randint(1, 3)):
            kind = self.kind(depth)
            fields.append(field(letter, kind))
            if isinstance(kind, str) and self._chance.random() < 0.4:
                fields[-1]["default"] = _default(kind)
            elif isinstance(kind, list) and self._chance.random() < 0.6:
                fields[-1]["default"] = None if kind[0] == "null" else 0
        return record(*fields, name=name)

    def changed(self, definition: Json) -> Json:
        changed = copy.deepcopy(definition)
        self._names += 10
        for _ in range(self._chance.randint(1, 2)):
            self._change(self._chance.choice(list(_records(changed))))
        return changed

    def _change(self, changed: Json) -> None:
        chance, fields = self._chance, changed["fields"]
        one = chance.choice(fields)
        match chance.randrange(8):
            case 0 if len(fields) > 1:
                fields.remove(one)
            case 1:
                fields.append(field(f"n{self._names}", "int", default=1))
            case 2:
                fields.append(field(f"n{self._names}", chance.choice(PRIMITIVES[1:])))
            case 3 if one["type"] in ("int", "long", "float"):
                one["type"] = {"int": "long", "long": "double", "float": "double"}[one["type"]]
                one.pop("default", None)
            case 4 if isinstance(one["type"], str) and one["type"] in PRIMITIVES:
                one["type"] = ["null", one["type"]]
                one["default"] = None
            case 5 if isinstance(one["type"], dict) and one["type"]["type"] == "enum":
                one["type"]["symbols"] = chance.sample("ABCDE", chance.randint(1, 5))
            case 6:
                one["aliases"] = [one["name"]]
                one["name"] = f"m{self._names}"
            case 7:
                one.pop("default", None)
                one["type"] = chance.choice(PRIMITIVES[1:])
            case _:
                chance.shuffle(fields)
        self._names += 1


def _records(definition: Json) -> Iterator[Json]:
    if isinstance(definition, list):
        for branch in definition:
            yield from _records(branch)
    elif isinstance(definition, dict):
        if definition["type"] == "record":
            yield definition
            for each in definition["fields"]:
                yield from _records(each["type"])
        yield from _records(definition.get("items", definition.get("values")))


def _default(kind: str) -> Json:
    return {"boolean": True, "bytes": "", "string": "x", "float": 0.5, "double": 0.5}.get(kind, 7)


def _native(message: str, field_name: str, number: int = 1, label: str = "LABEL_OPTIONAL") -> str:
    """A schema of Protobuf's own form: a file of one message with one field."""
    file = FileDescriptorProto(name="a.proto", package="p", syntax="proto2")
    added = file.message_type.add(name=message).field.add(name=field_name, number=number)
    added.type = FieldDescriptorProto.TYPE_INT32
    added.label = FieldDescriptorProto.Label.Value(label)
    content = FileDescriptorSet(file=[file]).SerializeToString()
    return json.dumps(
        {
            "fileDescriptorSet": base64.b64encode(content).decode(),
            "rootMessageTypeName": f"p.{message}",
            "rootFileDescriptorName": "a.proto",
        }
    )


def cases() -> list[Case]:
    """All of them, always the same."""
    made = []
    for number, (name, old, new) in enumerate(_rules()):
        kind = ("AVRO", "JSON", "PROTOBUF")[number % 3]
        made.append(Case(name, kind, (json.dumps(old),), json.dumps(new)))
        if name.split()[0] not in PRIMITIVES:
            made.append(Case(f"{name}, back", "AVRO", (json.dumps(new),), json.dumps(old)))
    for seed in range(RANDOM_CASES):
        chance = _Random(seed)
        versions = [chance.top()]
        for _ in range(1 + seed % 3):
            versions.append(chance.changed(versions[-1]))
        texts = [json.dumps(version) for version in versions]
        kind = ("AVRO", "AVRO", "JSON", "PROTOBUF")[seed % 4]
        made.append(Case(f"random {seed}", kind, tuple(texts[:-1]), texts[-1]))
    base = _native("M", "a")
    for name, new in (
        ("native same", base),
        ("native other message", _native("N", "a")),
        ("native other field", _native("M", "b", 2)),
        ("native required", _native("M", "b", 2, "LABEL_REQUIRED")),
        ("native same number", _native("M", "b")),
    ):
        made.append(Case(name, "PROTOBUF_NATIVE", (base,), new))
    made.append(Case("external", "EXTERNAL", ("one",), "two"))
    made.append(Case("string", "STRING", ("",), ""))
    return made


class Broker:
    """Asked over REST."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)

    def call(self, method: str, path: str, body: Json = None) -> tuple[int, Json]:
        """The status and the answer."""
        self._connection.request(
            method,
            f"/admin/v2/{path}",
            None if body is None else json.dumps(body),
            {"Content-Type": "application/json"},
        )
        answer = self._connection.getresponse()
        text = answer.read().decode()
        try:
            return answer.status, json.loads(text) if text else None
        except ValueError:
            return answer.status, text


def ask(url: str) -> dict[str, str]:
    """For each case one letter a strategy: `y`es or `n`o, which Apache Pulsar says by 500."""
    broker = Broker(url)
    answers: dict[str, str] = {}
    namespace = f"public/pairs-{uuid.uuid4().hex}"
    broker.call("PUT", f"namespaces/{namespace}")
    asked = cases()
    _set_strategy(broker, namespace, "ALWAYS_COMPATIBLE")
    for number, case in enumerate(asked):
        for text in case.history:
            body = {"type": case.kind, "schema": text, "properties": {}}
            status, said = broker.call("POST", f"schemas/{namespace}/t{number}/schema", body)
            if status != 200:
                raise ValueError(f"{case.name} was refused by {status}: {said}")
    for strategy in STRATEGIES:
        _set_strategy(broker, namespace, strategy)
        for number, case in enumerate(asked):
            body = {"type": case.kind, "schema": case.new, "properties": {}}
            status, said = broker.call("POST", f"schemas/{namespace}/t{number}/compatibility", body)
            assert status in (202, 500), (case, status, said)
            fits = status == 202 and said["compatibility"]
            answers[case.name] = answers.get(case.name, "") + ("y" if fits else "n")
    return answers


def _set_strategy(broker: Broker, namespace: str, strategy: str) -> None:
    path = f"namespaces/{namespace}/schemaCompatibilityStrategy"
    status, said = broker.call("PUT", path, strategy)
    assert status == 204, (status, said)
    while broker.call("GET", path)[1] != strategy:
        time.sleep(0.05)  # noqa: TID251 - a program of its own
    # What Apache Pulsar keeps of it may be older for a moment.
    time.sleep(1)  # noqa: TID251 - a program of its own


if __name__ == "__main__":
    said = ask(sys.argv[1])
    lines = [json.dumps([*astuple(case), said[case.name]]) for case in cases()]
    Path(sys.argv[2]).write_text("[\n" + ",\n".join(lines) + "\n]\n")
