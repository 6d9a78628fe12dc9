from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from pulsar_py.server.dispatch.exclusive_place import place_taken
from tests.dispatch_parts import FakeConnection


@dataclass
class Holder:
    name: str = "nightly-7"
    connected_since_millis: int = 1_769_817_600_000
    connection: FakeConnection = field(
        default_factory=lambda: FakeConnection(remote_address="/10.0.0.7:4711")
    )


def test_the_refusal_says_who_has_the_place_where_and_since_when() -> None:
    assert str(place_taken(cast("Any", Holder()))) == (
        "Exclusive consumer is already connected: 'nightly-7' from 10.0.0.7:4711 "
        "since 2026-01-31T00:00:00Z"
    )


def test_a_name_can_not_fill_the_text() -> None:
    assert len(str(place_taken(cast("Any", Holder(name="x" * 100_000))))) < 400
