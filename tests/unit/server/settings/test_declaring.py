"""Settings: declarations, checks, texts, immutability."""

# ruff: noqa: N815 - settings keep the names of broker.conf
from __future__ import annotations

from enum import Enum

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.settings.declaring import Settings, Value, setting


class Colour(Enum):
    RED = "red"
    DARK_BLUE = "dark-blue"


class Base(Settings):
    aNumber: int = setting(default=3, minimum=1, maximum=9, category="C", doc="d", dynamic=True)
    aShare: float = setting(default=0.5, minimum=0.0, maximum=1.0, category="C", doc="d")
    aFlag: bool = setting(default=True, category="C", doc="d")
    aText: str = setting(default="x", category="C", doc="d")


class Example(Base):
    aPort: int | None = setting(default=1, minimum=0, category="D", doc="d")
    aColour: Colour = setting(default=Colour.RED, category="D", doc="d")
    aSet: frozenset[str] = setting(
        default=frozenset({"a"}), choices=("a", "b"), category="D", doc="d"
    )
    aList: tuple[str, ...] = setting(default=(), category="D", doc="d")


def test_defaults_are_there_without_being_stored() -> None:
    example = Example()
    assert (example.aNumber, example.aFlag, example.aPort) == (3, True, 1)
    assert vars(example) == {}


def test_declarations_know_their_place_and_come_base_first() -> None:
    declared = Example.declared()
    assert list(declared) == [
        "aNumber", "aShare", "aFlag", "aText", "aPort", "aColour", "aSet", "aList",
    ]  # fmt: skip
    assert declared["aNumber"].name == "aNumber"
    assert declared["aNumber"].is_dynamic
    assert "aPort" not in Base.declared()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("aNumber", "4", 4),
        ("aNumber", " 4 ", 4),
        ("aNumber", "", 3),
        ("aShare", "1", 1.0),
        ("aFlag", "FALSE", False),
        ("aFlag", "", True),
        ("aText", "y z", "y z"),
        ("aText", "", ""),
        ("aPort", "", None),
        ("aPort", "0", 0),
        ("aColour", "dark-blue", Colour.DARK_BLUE),
        ("aColour", "DARK_BLUE", Colour.DARK_BLUE),
        ("aColour", "", Colour.RED),
        ("aSet", "a, b,", frozenset({"a", "b"})),
        ("aSet", "", frozenset()),
        ("aList", "b,a", ("b", "a")),
    ],
)
def test_a_text_is_parsed(name: str, text: str, value: Value) -> None:
    assert Example.declared()[name].parse(text) == value


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("aNumber", "many", "aNumber=many: expected a whole number"),
        ("aNumber", "1.5", "aNumber=1.5: expected a whole number"),
        ("aNumber", "0", "aNumber=0: must be at least 1"),
        ("aNumber", "10", "aNumber=10: must be at most 9"),
        ("aShare", "x", "aShare=x: expected a number"),
        ("aFlag", "yes", "aFlag=yes: expected true or false"),
        ("aColour", "blue", "aColour=blue: expected one of red, dark-blue"),
        ("aSet", "a,c", "aSet: 'c' is not allowed, expected any of a, b"),
    ],
)
def test_a_wrong_text_is_refused_with_name_value_and_bound(
    name: str, text: str, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"^{message}$"):
        Example.declared()[name].parse(text)


@pytest.mark.parametrize("declaration", Example.declared().values(), ids=lambda each: each.name)
def test_a_rendered_default_is_parsed_back(declaration: object) -> None:
    from pulsar_py.server.settings.declaring import Setting  # noqa: PLC0415

    assert isinstance(declaration, Setting)
    assert declaration.parse(declaration.render(declaration.default)) == declaration.default


def test_render_has_one_text_for_a_value() -> None:
    declared = Example.declared()
    assert declared["aSet"].render(frozenset({"b", "a"})) == "a,b"
    assert declared["aList"].render(("b", "a")) == "b,a"
    assert declared["aFlag"].render(False) == "false"
    assert declared["aColour"].render(Colour.DARK_BLUE) == "dark-blue"
    assert declared["aPort"].render(None) == ""


def test_values_are_checked_when_they_are_given() -> None:
    assert Example(aNumber=4, aShare=1).aShare == 1.0
    assert Example(aPort=None).aPort is None
    with pytest.raises(ConfigurationError, match="aNumber='4': expected a whole number"):
        Example(aNumber="4")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="aNumber=True"):
        Example(aNumber=True)
    with pytest.raises(ConfigurationError, match="aFlag=1: expected true or false"):
        Example(aFlag=1)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="unknown setting nothing"):
        Example(nothing=1)  # type: ignore[call-arg]


def test_replace_makes_a_new_one() -> None:
    old = Example(aNumber=4)
    new = old.replace(aFlag=False)
    assert (new.aNumber, new.aFlag) == (4, False)
    assert old.aFlag
    assert new.replace(aNumber=5).aNumber == 5


def test_settings_do_not_change() -> None:
    example = Example()
    with pytest.raises(AttributeError, match="immutable"):
        example.aNumber = 4  # type: ignore[misc]
    with pytest.raises(AttributeError, match="immutable"):
        del example.aNumber


def test_equal_by_values_whether_given_or_default() -> None:
    assert Example() == Example(aNumber=3)
    assert hash(Example()) == hash(Example(aNumber=3))
    assert Example() != Example(aNumber=4)
    assert Example() != Base()


def test_repr_shows_what_differs() -> None:
    assert repr(Example(aNumber=4, aFlag=True)) == "Example(aNumber=4)"
