from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import pytest

from pulsar_py.schema.classes.defaults import fixed_default

NUMBERS = count()


@dataclass
class Stamped:
    at: date


@pytest.mark.parametrize("factory", [list, dict, lambda: ["a"], lambda: 5, lambda: None])
def test_what_is_always_the_same_is_a_default(factory: Callable[[], Any]) -> None:
    assert fixed_default(factory) == (factory(), True)


@pytest.mark.parametrize(
    "factory",
    [
        uuid4,
        lambda: UUID(int=1),
        lambda: datetime(2026, 5, 1, tzinfo=UTC),
        date.today,
        lambda: [date(2026, 5, 1)],
        lambda: {"a": (UUID(int=1),)},
        lambda: Stamped(date(2026, 5, 1)),
        lambda: next(NUMBERS),
        object,
    ],
)
def test_what_may_be_another_one_next_time_is_none(factory: Callable[[], Any]) -> None:
    assert not fixed_default(factory)[1]
