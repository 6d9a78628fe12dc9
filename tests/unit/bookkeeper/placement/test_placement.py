from __future__ import annotations

from collections.abc import Collection, Mapping
from random import Random

from pulsar_py.bookkeeper.metadata.ledger_metadata import write_set
from pulsar_py.bookkeeper.placement.placement import Placement, PlacementSettings
from pulsar_py.bookkeeper.placement.rack_map import RackMap

ALL = [f"b{number}:1" for number in range(6)]
TWO_RACKS = RackMap(racks={each: f"/r{number % 2}" for number, each in enumerate(ALL)})
THREE_RACKS = RackMap(racks={each: f"/r{number % 3}" for number, each in enumerate(ALL)})
REGIONS = RackMap(racks={each: f"/{'west' if number < 4 else 'east'}/r{number}"
                         for number, each in enumerate(ALL)})  # fmt: skip


def fill(
    racks: RackMap,
    places: Mapping[int, str | None],
    seed: int = 1,
    *,
    ensemble: Mapping[int, str] | None = None,
    candidates: Collection[str] = tuple(ALL),
    size: int = 3,
    write_quorum_size: int = 2,
    avoided: Collection[str] = (),
    settings: PlacementSettings | None = None,
) -> dict[int, str]:
    return Placement(settings or PlacementSettings(), racks).fill(
        ensemble or {},
        places,
        list(candidates),
        ensemble_size=size,
        write_quorum_size=write_quorum_size,
        is_avoided=lambda each: each in avoided,
        chance=Random(seed),
    )


def new(racks: RackMap, seed: int = 1, **changes: object) -> list[str]:
    size = changes.get("size", 3)
    assert isinstance(size, int)
    filled = fill(racks, dict.fromkeys(range(size)), seed, **changes)  # type: ignore[arg-type]  # as there
    return [filled[place] for place in range(size)]


def test_without_racks_bookies_differ_and_all_get_their_share() -> None:
    chosen = [new(RackMap(), seed) for seed in range(100)]
    assert all(len(set(each)) == 3 for each in chosen)
    assert {bookie_id for each in chosen for bookie_id in each} == set(ALL)


def test_each_write_set_lies_on_different_racks_where_it_can() -> None:
    for seed in range(30):
        ensemble = new(THREE_RACKS, seed, size=6, write_quorum_size=3)
        for entry_id in range(6):
            places = write_set(entry_id, 6, 3)
            assert len({THREE_RACKS.rack_of(ensemble[i]) for i in places}) == 3
        ensemble = new(TWO_RACKS, seed, size=4, write_quorum_size=2)
        racks = [TWO_RACKS.rack_of(each) for each in ensemble]
        assert all(racks[i] != racks[(i + 1) % 4] for i in range(4))


def test_racks_may_be_left_out_of_account() -> None:
    settings = PlacementSettings(is_rack_aware=False)
    chosen = [new(TWO_RACKS, seed, size=2, settings=settings) for seed in range(50)]
    assert any(TWO_RACKS.rack_of(a) == TWO_RACKS.rack_of(b) for a, b in chosen)


def test_regions_count_before_racks_where_they_count() -> None:
    settings = PlacementSettings(is_region_aware=True)
    for seed in range(20):
        chosen = new(REGIONS, seed, size=2, settings=settings)
        assert {REGIONS.region_of(each) for each in chosen} == {"/west", "/east"}


def test_who_is_avoided_comes_only_where_others_are_too_few() -> None:
    for seed in range(20):
        assert not {"b0:1", "b1:1"} & set(new(TWO_RACKS, seed, avoided=["b0:1", "b1:1"]))
    chosen = new(TWO_RACKS, candidates=ALL[:3], avoided=ALL[:2])
    assert sorted(chosen) == ALL[:3]


def test_the_first_bookie_is_in_the_brokers_own_rack() -> None:
    settings = PlacementSettings(local_host="b0")
    racks = RackMap(racks={**TWO_RACKS.racks, "b0": "/r0"})
    for seed in range(20):
        assert racks.rack_of(new(racks, seed, settings=settings)[0]) == "/r0"


def test_a_failed_bookies_place_goes_to_its_rack_unless_that_crowds_a_write_set() -> None:
    standing = {0: "b0:1", 1: "b1:1"}
    for seed in range(20):
        filled = fill(THREE_RACKS, {2: "b2:1"}, seed, ensemble=standing, candidates=["b3:1", "b4:1",
                      "b5:1"], write_quorum_size=3)  # fmt: skip
        assert filled == {2: "b5:1"}
    filled = fill(TWO_RACKS, {2: "b2:1"}, ensemble=standing, candidates=["b0:1", "b1:1"])
    assert filled == {}, "nobody stands twice"


def test_as_many_places_are_filled_as_there_are_candidates() -> None:
    filled = fill(RackMap(), {0: "x", 1: "y"}, ensemble={2: "b2:1"}, candidates=ALL[:3])
    assert sorted(filled.values()) == ["b0:1", "b1:1"]
    assert list(fill(RackMap(), {0: "x", 1: "y"}, candidates=ALL[:1])) == [0]


def test_the_least_number_of_racks_is_only_enforced_where_that_is_asked_for() -> None:
    enforced = PlacementSettings(enforces_min_racks=True)
    one_rack = ["b0:1", "b2:1", "b4:1"]
    assert Placement(PlacementSettings(), TWO_RACKS).has_enough_racks(one_rack, 2)
    assert not Placement(enforced, TWO_RACKS).has_enough_racks(one_rack, 2)
    assert not Placement(enforced, TWO_RACKS).has_enough_racks(["b0:1", "b1:1", "b2:1"], 2)
    assert Placement(enforced, TWO_RACKS).has_enough_racks(["b0:1", "b1:1"], 2)
    assert Placement(enforced, TWO_RACKS).has_enough_racks(one_rack, 1)


def test_replicas_are_read_from_the_own_rack_first_and_from_who_fails_last() -> None:
    racks = RackMap(racks={**TWO_RACKS.racks, "here": "/r1"})

    def order(settings: PlacementSettings) -> list[str]:
        return Placement(settings, racks).read_order(
            ["b0:1", "b1:1", "b2:1", "b3:1", "b5:1"],
            is_failing=lambda each: each == "b3:1",
            is_avoided=lambda each: each == "b0:1",
            read_only=["b1:1"],
        )

    here = PlacementSettings(local_host="here")
    assert order(here) == ["b5:1", "b2:1", "b1:1", "b0:1", "b3:1"]
    assert order(PlacementSettings()) == ["b2:1", "b5:1", "b1:1", "b0:1", "b3:1"]
    anywhere = PlacementSettings(local_host="here", reorders_reads=False)
    assert order(anywhere) == ["b2:1", "b5:1", "b1:1", "b0:1", "b3:1"]
