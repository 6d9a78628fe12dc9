"""The client's API reference is fresh, and has everything that is public."""

from __future__ import annotations

import pulsar_py
import pulsar_py.schema
from docs import client_api
from tests.package_source import ROOT


def test_the_reference_is_not_stale() -> None:
    written = (ROOT / client_api.PATH).read_text(encoding="utf-8")
    assert written == client_api.render(), "run `make docs`"


def test_everything_public_is_in_it_once() -> None:
    placed = [name for names in client_api.sections().values() for name in names]
    public = set(pulsar_py.__all__) | set(pulsar_py.schema.__all__)
    assert public - client_api.NOT_OF_THE_CLIENT <= set(placed)
    assert len(placed) == len(set(placed))
