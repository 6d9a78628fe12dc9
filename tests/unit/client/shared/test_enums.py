"""The enumerations that users choose from, beside the official client's."""

from __future__ import annotations

import pulsar
import pytest

from pulsar_py.client.shared import enums

OFFICIAL = [name for name in enums.__all__ if hasattr(pulsar, name)]


@pytest.mark.parametrize("name", OFFICIAL)
def test_names_and_numbers_are_those_of_the_official_client(name: str) -> None:
    ours = {each.name: each.value for each in getattr(enums, name)}
    theirs = {each: int(value) for each, value in getattr(pulsar, name).__members__.items()}

    assert ours == theirs


def test_most_come_from_the_official_client() -> None:
    assert set(enums.__all__) - set(OFFICIAL) == {
        "HashingScheme",
        "ProducerCryptoFailureAction",
        "SubscriptionMode",
    }
