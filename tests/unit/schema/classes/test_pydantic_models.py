"""Models of pydantic become records, and what is read is validated by them."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID, uuid4

import pydantic
import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field

from pulsar_py.common.errors import InvalidConfigurationError, SchemaSerializationError
from pulsar_py.schema import AvroSchema, Int32, JsonSchema

SCHEMAS = [AvroSchema, JsonSchema]
T = TypeVar("T")


class Line(BaseModel):
    article: str
    count: pydantic.PositiveInt = 1


class Card(BaseModel):
    by: Literal["card"] = "card"
    digits: str


class Cash(BaseModel):
    by: Literal["cash"] = "cash"
    given: Decimal


class Order(BaseModel):
    id: UUID = Field(default_factory=uuid4)
    at: pydantic.AwareDatetime = Field(default_factory=lambda: datetime.now(UTC))
    local: pydantic.NaiveDatetime | None = None
    lines: list[Line] = []
    payment: Card | Cash | None = Field(default=None, discriminator="by")
    total: Annotated[Decimal, Field(max_digits=9, decimal_places=2)] = Decimal("0.50")
    tip: Annotated[Decimal, Field(max_digits=5, decimal_places=1)] | None = None
    small: Int32 = 3
    parts: dict[str, "Order"] = {}  # noqa: UP037 - as people write it


class Aliased(BaseModel):
    city: str = Field(alias="City")
    zip: int = Field(validation_alias=AliasChoices("zipCode", "zip"))
    street: str = Field(serialization_alias="Street")


class ByName(BaseModel):
    model_config = ConfigDict(populate_by_name=True, frozen=True, strict=True)
    city: str = Field(alias="City")


class Page(BaseModel, Generic[T]):
    items: list[T]


ORDER = Order(
    local=datetime(2026, 5, 1),  # noqa: DTZ001 - without a time zone on purpose
    lines=[Line(article="a", count=2)],
    payment=Cash(given=Decimal("1.5")),
    total=Decimal("12.34"),
    tip=Decimal("1.5"),
    parts={"a": Order()},
)
ROUND_TRIPS = [
    (Order, ORDER),
    (Order, Order(payment=Card(digits="1"))),
    (Aliased, Aliased(City="Rome", zipCode=1, street="s")),
    (ByName, ByName(city="Rome")),
    (Page[Line], Page[Line](items=[Line(article="a")])),
]


@pytest.mark.parametrize("make", SCHEMAS)
@pytest.mark.parametrize(("owner", "value"), ROUND_TRIPS)
def test_models_come_back_as_they_were(make: Any, owner: Any, value: Any) -> None:
    schema = make(owner)
    back = schema.decode(schema.encode(value))

    assert back == value
    assert type(back) is type(value)


def definition(owner: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(AvroSchema(owner).schema_info().data)
    return found


def test_the_definition_is_the_same_each_time() -> None:
    assert AvroSchema(Order).schema_info() == AvroSchema(Order).schema_info()
    fields = {each["name"]: each for each in definition(Order)["fields"]}
    assert "default" not in fields["id"]
    assert "default" not in fields["at"]
    assert fields["lines"]["default"] == []
    assert fields["total"]["type"]["scale"] == 2
    assert fields["tip"]["type"][1]["precision"] == 5
    assert fields["small"]["type"] == "int"


def test_fields_have_their_python_names() -> None:
    names = [each["name"] for each in definition(Aliased)["fields"]]

    assert names == ["city", "zip", "street"]
    assert definition(Page[Line])["name"] == "Page_Line"


@pytest.mark.parametrize("make", SCHEMAS)
def test_what_a_model_refuses_is_an_error_that_names_the_field(make: Any) -> None:
    wrong = Line.model_construct(article="a", count=0)

    with pytest.raises(SchemaSerializationError, match=r"Line refuses: count: .*greater than 0"):
        make(Line).decode(make(Line).encode(wrong))


def test_json_without_a_field_has_the_model_s_default() -> None:
    assert JsonSchema(Line).decode(b'{"article":"a"}') == Line(article="a")
    first, second = (JsonSchema(Order).decode(b"{}") for _ in range(2))
    assert first.id != second.id


class Hidden(BaseModel):
    a: int = 1
    secret: str = Field(default="x", exclude=True)


class HiddenWithoutDefault(BaseModel):
    secret: str = Field(exclude=True)


class FromPath(BaseModel):
    a: int = Field(validation_alias=AliasPath("x", 0))


class Derived(Line):
    more: int = 1


def test_excluded_fields_are_left_out() -> None:
    assert [each["name"] for each in definition(Hidden)["fields"]] == ["a"]


@pytest.mark.parametrize(
    ("owner", "text"),
    [
        (HiddenWithoutDefault, r"HiddenWithoutDefault\.secret is excluded and has no default"),
        (FromPath, r"FromPath\.a is validated from a path.*populate_by_name"),
        (BaseModel, "BaseModel has no fields"),
        (Line(article="a"), "that is an object: give its class, Line"),
    ],
)
def test_models_that_would_not_come_back_are_refused(owner: Any, text: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=text):
        AvroSchema(owner)


def test_a_model_that_names_what_is_not_there_is_refused() -> None:
    class Lost(BaseModel):
        when: "Nowhere"  # type: ignore[name-defined] # noqa: F821, UP037 - not there

    with pytest.raises(InvalidConfigurationError, match=r"Lost: .*Nowhere.* is not defined"):
        AvroSchema(Lost)


@pytest.mark.parametrize("make", SCHEMAS)
def test_an_object_of_a_derived_model_is_refused(make: Any) -> None:
    with pytest.raises(SchemaSerializationError, match=r"takes Line, not Derived.*names Derived"):
        make(Line).encode(Derived(article="a"))


def test_pydantic_is_not_loaded_for_other_classes() -> None:
    code = (
        "import dataclasses, sys\n"
        "from pulsar_py.schema import AvroSchema, JsonSchema\n"
        "R = dataclasses.make_dataclass('R', [('a', int)])\n"
        "AvroSchema(R), JsonSchema(R)\n"
        "print('pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
