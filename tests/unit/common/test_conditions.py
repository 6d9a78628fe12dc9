"""Conditions on decoded values."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.common.conditions import Condition
from pulsar_py.common.errors import ConfigurationError

ORDER = {
    "amount": 12.5,
    "count": 3,
    "country": "SE",
    "at": "2026-02-01T10:00:00Z",
    "paid": True,
    "note": None,
    "lines": [{"sku": "a-1"}, {"sku": "b-2"}],
    "zip": "01234",
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("amount>10", True),
        ("amount > 12.5", False),
        ("amount>=12.5", True),
        ("count<=2", False),
        ("count=3", True),
        ("count==3.0", True),
        ("count!=3", False),
        ("country=SE", True),
        ('country="SE"', True),
        ("country!=NO", True),
        ("country~^S", True),
        ("country~^E", False),
        ("at>2026-01-31", True),
        ("at<2026-01-31", False),
        ("paid=true", True),
        ("paid=1", False),
        ("paid>0", False),
        ("note=null", True),
        ("note!=null", False),
        ("note>1", False),
        ("lines.1.sku=b-2", True),
        ("lines.2.sku=b-2", False),
        ("lines.x.sku=b-2", False),
        ("lines=1", False),
        ("missing=1", False),
        ("missing!=1", True),
        ("missing~.", False),
        ("missing<1", False),
        ("zip=01234", True),
        ("zip=1234", False),
        ("amount=12.5abc", False),
        ("count>abc", False),
    ],
)
def test_a_condition_holds_or_not(text: str, *, holds: bool) -> None:
    assert Condition.parse(text).holds(ORDER) is holds


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [(".=5", 5, True), (".~b", "abc", True), (".=null", None, True), (".x=1", {"x": 1}, False)],
)
def test_the_value_itself_is_a_dot(text: str, value: Any, *, holds: bool) -> None:
    assert Condition.parse(text).holds(value) is holds


@pytest.mark.parametrize("text", ["amount", "", ">5", "note~("])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--where"):
        Condition.parse(text)
