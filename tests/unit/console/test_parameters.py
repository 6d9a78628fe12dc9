from __future__ import annotations

import pytest

from pulsar_py.admin.http_messages import HttpError, Request
from pulsar_py.common.position import Position
from pulsar_py.console.parameters import Amount, EntryParameter


def request(**query: str) -> Request:
    return Request(method="GET", raw_path="/x", query=query)


CELLS = Amount("cells", minimum=1, maximum=2000, default=600)


@pytest.mark.parametrize(("text", "value"), [("", 600), ("1", 1), ("2000", 2000)])
def test_amounts(text: str, value: int) -> None:
    assert CELLS.required(request(cells=text)) == value


@pytest.mark.parametrize("text", ["0", "2001", "-1", "x", "1" * 30, "²"])
def test_amounts_out_of_bounds_are_refused(text: str) -> None:
    with pytest.raises(HttpError) as caught:
        CELLS.of(request(cells=text))
    assert caught.value.status == 400


def test_an_amount_without_default_may_be_left_out_where_it_is_not_required() -> None:
    assert Amount("count").of(request()) is None
    with pytest.raises(HttpError, match="count"):
        Amount("count").required(request())


def test_places_of_entries() -> None:
    place = EntryParameter("first")
    assert place.of(request()) is None
    assert place.of(request(first="12:0")) == Position(12, 0)
    for text in ("12", "12:", ":1", "a:b", "1:-1", "1" * 30 + ":" + "1" * 30):
        with pytest.raises(HttpError, match="ledger:entry"):
            place.of(request(first=text))
