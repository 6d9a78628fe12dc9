from __future__ import annotations

import json

import pytest

from pulsar_py.bookkeeper.placement.rack_map import DEFAULT_RACK, DEFAULT_REGION, RackMap
from pulsar_py.common.errors import CorruptDataError

VALUE = json.dumps(
    {
        "fast": {
            "a:1": {"rack": "/west/r1", "hostname": "a.example"},
            "b:1": {"rack": "r2", "hostname": "b"},
        },
        "slow": {"b:1": {"rack": "/r2"}, "c:1": {}, "d:1": None},
    }
).encode()
RACKS = RackMap.parse("/bookies", VALUE)


def test_racks_and_regions_are_found_by_id_and_by_host() -> None:
    assert [RACKS.rack_of(each) for each in ("a:1", "b:1", "b:9", "c:1", "e:1")] == [
        "/west/r1", "/r2", "/r2", DEFAULT_RACK, DEFAULT_RACK,
    ]  # fmt: skip
    assert RACKS.rack_of("a") == "/west/r1"
    assert [RACKS.region_of(each) for each in ("a:1", "b:1", "e:1")] == [
        "/west", DEFAULT_REGION, DEFAULT_REGION,
    ]  # fmt: skip


def test_a_bookie_may_be_in_several_groups_or_in_none() -> None:
    assert RACKS.is_in("b:1", ["slow"])
    assert RACKS.is_in("b:1", ["fast"])
    assert not RACKS.is_in("a:1", ["slow", "unknown"])
    assert RACKS.has_group("d:1")
    assert not RACKS.has_group("e:1")


def test_no_map_and_an_empty_one_are_the_same() -> None:
    assert RackMap.parse("/bookies", b"{}") == RackMap.parse("/bookies", b"") == RackMap()


@pytest.mark.parametrize("value", [b"[", b"[]", b'{"group": []}'])
def test_what_is_no_map_is_refused_with_its_path(value: bytes) -> None:
    with pytest.raises(CorruptDataError, match="/bookies: "):
        RackMap.parse("/bookies", value)
