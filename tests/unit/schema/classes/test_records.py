"""Definitions are compared with those of the official client, where it has the same classes."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

import pulsar.schema
import pytest

import pulsar_py.schema
from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema import (
    Array,
    AvroSchema,
    Boolean,
    Bytes,
    CustomEnum,
    Double,
    Field,
    Float,
    Integer,
    JsonSchema,
    Long,
    Map,
    Null,
    Record,
    String,
)
from pulsar_py.schema.classes.records import record_type


class Colour(Enum):
    RED = 1
    GREEN = 2


def plain(schemas: Any) -> Any:
    class Plain(schemas.Record):
        b = schemas.Integer()
        a = schemas.String()

    return Plain


def by_name(schemas: Any) -> Any:
    class ByName(schemas.Record):
        _sorted_fields = True
        b = schemas.Integer()
        a = schemas.String()

    return ByName


def of_everything(schemas: Any) -> Any:
    class Other(schemas.Record):
        _avro_namespace = "other"
        x = schemas.Integer()

    class Inner(schemas.Record):
        x = schemas.Integer()
        y = schemas.String(required=True)

    class Outer(schemas.Record):
        _avro_namespace = "com.example"
        a = schemas.Integer()
        b = schemas.Integer(required=True)
        c = schemas.Long(default=5)
        d = schemas.Long(default=5, required_default=True)
        e = schemas.String(default="q", required=True)
        f = schemas.Boolean(default=True)
        g = schemas.Float()
        h = schemas.Double(default=1.5, required_default=True)
        i = schemas.Bytes()
        j = schemas.Null()
        k = schemas.Array(schemas.Integer())
        m = schemas.Array(schemas.String(), required=True)
        n = schemas.Map(schemas.Long())
        o = schemas.Array(Inner())
        p = schemas.Map(Inner())
        q = schemas.CustomEnum(Colour)
        r = schemas.CustomEnum(Colour, required=True)
        s = schemas.CustomEnum(Colour, default=Colour.RED, required_default=True)
        t = Inner()
        u = Inner(required=True)
        v = schemas.Array(schemas.Array(schemas.Integer()))
        w = Other()
        x = Other(required_default=True)
        y = schemas.Array(schemas.Integer(), default=[1], required_default=True)
        z = schemas.Map(schemas.Integer(), default={"a": 1}, required_default=True)
        aa = schemas.String(default="ä", required_default=True)
        bb = schemas.String(required_default=True)
        cc = schemas.Boolean(required_default=True)
        dd = schemas.Integer(default=3, required=True, required_default=True)

    return Outer


MAKERS = [plain, by_name, of_everything]


@pytest.mark.parametrize("make", MAKERS)
def test_definitions_are_the_official_client_s(make: Any) -> None:
    mine, theirs = make(pulsar_py.schema), make(pulsar.schema)

    assert json.dumps(mine.schema()) == json.dumps(theirs.schema())


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("kind", ["AvroSchema", "JsonSchema"])
def test_brokers_get_the_same_text_from_both(make: Any, kind: str) -> None:
    mine = getattr(pulsar_py.schema, kind)(make(pulsar_py.schema)).schema_info()
    theirs = getattr(pulsar.schema, kind)(make(pulsar.schema)).schema_info()

    assert mine.data.decode() == theirs.schema()
    assert mine.name == theirs.name()


def test_both_write_the_same_avro() -> None:
    mine, theirs = plain(pulsar_py.schema), plain(pulsar.schema)

    data = pulsar.schema.AvroSchema(theirs).encode(theirs(a="x", b=-1))

    assert AvroSchema(mine).encode(mine(a="x", b=-1)) == data
    assert AvroSchema(mine).decode(data) == mine(a="x", b=-1)


class Inner(Record):
    x = Integer()
    y = String()


class Outer(Record):
    name = String(default="n")
    flag = Boolean()
    numbers = Array(Integer(), default=[1])
    counts = Map(Long())
    colour = CustomEnum(Colour)
    colours = Array(CustomEnum(Colour))
    data = Bytes()
    small = Float()
    large = Double()
    nothing = Null()
    inner = Inner()
    inners = Array(Inner())


def test_what_is_not_given_has_its_default() -> None:
    record = Outer()

    assert (record.name, record.flag, record.numbers) == ("n", False, [1])
    assert (record.counts, record.colour, record.inners) == (None, None, None)
    assert record.inner == Inner(x=None, y=None)


def test_defaults_are_not_shared() -> None:
    one, other = Outer(), Outer()

    one.numbers.append(2)
    one.inner.x = 5

    assert other.numbers == [1]
    assert other.inner.x is None


def test_records_are_equal_if_their_fields_are() -> None:
    assert Inner(x=1) == Inner(x=1)
    assert Inner(x=1) != Inner(x=2)
    assert Inner(x=1) != Outer()
    assert Inner(x=1) != 5


def test_a_record_says_what_it_is() -> None:
    assert repr(Inner(x=1)) == "Inner(x=1, y=None)"


def test_unknown_names_are_left_out() -> None:
    assert Inner(x=1, z=2) == Inner(x=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", 5),
        ("flag", 1),
        ("numbers", (1,)),
        ("numbers", ["a"]),
        ("counts", ["a"]),
        ("counts", {1: 1}),
        ("counts", {"a": "b"}),
        ("colour", "BLUE"),
        ("colour", 7),
        ("colours", [7]),
        ("data", "text"),
        ("small", "1"),
        ("small", 1e39),
        ("nothing", 5),
        ("inner", 5),
        ("inners", [5]),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=name):
        Outer(**{name: value})
    with pytest.raises(TypeError, match=name):
        setattr(Outer(), name, value)


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("colour", "RED", Colour.RED),
        ("colour", 2, Colour.GREEN),
        ("colours", ["RED", Colour.GREEN], [Colour.RED, Colour.GREEN]),
        ("inner", {"x": 1}, Inner(x=1)),
        ("inners", [{"x": 1}, Inner(x=2)], [Inner(x=1), Inner(x=2)]),
        ("small", 1, 1),
        ("inner", None, None),
        ("counts", {"a": 2}, {"a": 2}),
    ],
)
def test_what_means_a_value_becomes_it(name: str, given: Any, kept: Any) -> None:
    assert getattr(Outer(**{name: given}), name) == kept


def test_fields_of_a_base_class_are_inherited() -> None:
    class Derived(Inner):
        z = Long()

    assert [each["name"] for each in Derived.schema()["fields"]] == ["x", "y", "z"]
    assert Derived(x=1, z=2).x == 1


def test_fields_may_have_any_name() -> None:
    class Odd(Record):
        type = String()
        value = String()
        fields = String()
        schema_info = String()

    value = Odd(type="t", value="v", fields="f", schema_info="s")

    assert AvroSchema(Odd).decode(AvroSchema(Odd).encode(value)) == value


def test_arrays_of_enumerations_are_defined() -> None:
    fields = {each["name"]: each["type"] for each in Outer.schema()["fields"]}

    assert fields["colours"] == ["null", {"type": "array", "items": "Colour"}]


def test_a_field_knows_what_it_was_told() -> None:
    field = String(default="d", required=True, required_default=True)

    assert (field.default(), field.required(), field.required_default()) == ("d", True, True)


def test_what_is_no_field_is_refused() -> None:
    for make in (lambda: Array(int), lambda: Map("x"), lambda: CustomEnum(int)):
        with pytest.raises(TypeError):
            make()  # type: ignore[no-untyped-call]


def test_a_default_that_does_not_fit_is_refused() -> None:
    class Wrong(Record):
        x = Integer(default="text", required_default=True)

    with pytest.raises(InvalidConfigurationError, match=r"Wrong\.x"):
        record_type(Wrong)


def test_an_unset_required_field_can_not_be_encoded() -> None:
    class Required(Record):
        x = String(required=True)

    for schema in (AvroSchema(Required), JsonSchema(Required)):
        with pytest.raises(pulsar_py.SchemaSerializationError, match="x: takes text"):
            schema.encode(Required())


def test_a_field_by_itself_has_no_type() -> None:
    with pytest.raises(NotImplementedError):
        Field()._value_type()


def test_a_constructor_of_ones_own_is_used() -> None:
    class Own(Record):
        x = Integer()

        def __init__(self, **values: Any) -> None:
            super().__init__(**values)
            self.twice = 2 * self.x

    assert AvroSchema(Own).decode(AvroSchema(Own).encode(Own(x=2))).twice == 4


def test_a_decoded_record_is_like_any_other() -> None:
    decoded = JsonSchema(Outer).decode(b'{"name":"x"}')

    assert decoded == Outer(name="x")
    assert vars(decoded).keys() == vars(Outer()).keys()
    with pytest.raises(TypeError):
        decoded.name = 5
