"""Names of answers' types."""

from __future__ import annotations

import msgspec
import pytest

from pulsar_py.admin.api.all_routes import all_routes
from pulsar_py.admin.api.answers import Refusal, StandstillReason, type_of
from tests.unit.admin.resources.conftest import Admin


def test_a_type_is_itself_and_a_text_names_one() -> None:
    assert type_of(list[int]) == list[int]
    assert type_of("Refusal") is Refusal
    assert type_of("dict[str, StandstillReason]") == dict[str, StandstillReason]


def test_an_answer_has_no_fields_that_are_not_declared() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"reason": "x", "more": 1}, Refusal)


async def test_all_names_of_routes_are_known(admin: Admin) -> None:
    for route in all_routes(admin.service):
        assert route.answer is None or type_of(route.answer) is not None
