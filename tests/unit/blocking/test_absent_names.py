"""Names of the official client say what to use, without `await`."""

from __future__ import annotations

import pytest

from pulsar_py import blocking
from pulsar_py.blocking import absent_names
from pulsar_py.client.shared import absent_names as asynchronous


@pytest.mark.parametrize("kind", ["CLIENT", "CONSUMER", "PRODUCER", "READER"])
def test_all_are_there_and_nothing_awaits(kind: str) -> None:
    names = getattr(absent_names, kind)
    assert names.keys() == getattr(asynchronous, kind).keys()
    assert not any("await" in words for words in names.values())


def test_asking_for_one_tells(client: blocking.Client) -> None:
    with pytest.raises(AttributeError, match="Client has no new_transaction: transactions"):
        client.new_transaction  # noqa: B018 - asking for it is what is tested
