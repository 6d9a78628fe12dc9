"""Protocol versions."""

from __future__ import annotations

import pytest

from pulsar_py.wire.versions import CURRENT_VERSION, FIRST_VERSION, Feature, allows, negotiate


def test_every_feature_has_its_first_version() -> None:
    assert set(FIRST_VERSION) == set(Feature)
    assert max(FIRST_VERSION.values()) == CURRENT_VERSION == 21


@pytest.mark.parametrize(("peer", "agreed"), [(0, 0), (5, 5), (12, 12), (21, 21), (99, 21)])
def test_both_go_by_the_lower_version(peer: int, agreed: int) -> None:
    assert negotiate(peer) == agreed


@pytest.mark.parametrize(
    ("feature", "first"),
    [
        (Feature.PING, 1),
        (Feature.CLOSE_WITHOUT_DISCONNECT, 5),
        (Feature.CHECKSUM_IN_MESSAGE, 11),
        (Feature.ACTIVE_CONSUMER_CHANGE, 12),
        (Feature.ACK_RESPONSE, 17),
    ],
)
def test_a_feature_begins_with_its_version(feature: Feature, first: int) -> None:
    assert not allows(first - 1, feature)
    assert allows(first, feature)
