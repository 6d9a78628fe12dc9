"""Chooses the bookies of an ensemble, by racks, regions and health (pure).

The places of an ensemble are filled one after the other, each with the candidate that has the
fewest neighbours in its region and its rack: neighbours are those with which it shares a write set.
Among equals the replaced bookie's rack is preferred, or the broker's own for the first place, and
then one is drawn by chance. Bookies to be avoided (quarantined, or failed before) are chosen only
if there are no others. With fewer than two known racks all choices are by chance.

Readers ask replicas in the order of their write set, those of the broker's own rack first, failing
and avoided ones last.

Source: RackawareEnsemblePlacementPolicyImpl, RegionAwareEnsemblePlacementPolicy in Apache
BookKeeper.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from pulsar_py.bookkeeper.metadata.ledger_metadata import write_set
from pulsar_py.bookkeeper.placement.isolation import IsolationGroups
from pulsar_py.bookkeeper.placement.rack_map import RackMap


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementSettings:
    """The settings of placement."""

    is_rack_aware: bool = True
    """`bookkeeperClientRackawarePolicyEnabled`."""
    is_region_aware: bool = False
    """`bookkeeperClientRegionawarePolicyEnabled`: regions count before racks."""
    min_racks_per_write_quorum: int = 2
    """`bookkeeperClientMinNumRacksPerWriteQuorum`; bounds nothing unless it is enforced."""
    enforces_min_racks: bool = False
    """`bookkeeperClientEnforceMinNumRacksPerWriteQuorum`: rather no ledger than fewer racks."""
    isolation: IsolationGroups = field(default_factory=IsolationGroups)
    """`bookkeeperClientIsolationGroups`, `bookkeeperClientSecondaryIsolationGroups`."""
    reorders_reads: bool = True
    """`bookkeeperClientReorderReadSequenceEnabled`: the own rack's replica is asked first."""
    local_host: str = ""
    """The broker's host, as the rack map may name it; empty: it is in no rack."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Settings and one version of the rack map."""

    settings: PlacementSettings
    racks: RackMap

    def _location(self, bookie_id: str) -> tuple[str, str]:
        settings = self.settings
        region = self.racks.region_of(bookie_id) if settings.is_region_aware else ""
        is_aware = settings.is_rack_aware or settings.is_region_aware
        return region, self.racks.rack_of(bookie_id) if is_aware else ""

    @property
    def _local_rack(self) -> str | None:
        host = self.settings.local_host
        return self.racks.rack_of(host) if host and host in self.racks.racks else None

    def fill(
        self,
        ensemble: Mapping[int, str],
        places: Mapping[int, str | None],
        candidates: Sequence[str],
        *,
        ensemble_size: int,
        write_quorum_size: int,
        is_avoided: Callable[[str], bool],
        chance: Random,
    ) -> dict[int, str]:
        """Bookies for some places of an ensemble; fewer where there are too few candidates.

        Args:
            ensemble: Who stands in the other places.
            places: Those to be filled, with who stood there before.
            candidates: Who may stand there; those of `ensemble` are passed over.
            ensemble_size: Its places, from 0.
            write_quorum_size: How many places next to each other have an entry.
            is_avoided: Whether a bookie is only taken where there is no other.
            chance: Decides among those alike.
        """
        standing = dict(ensemble)
        left = [each for each in candidates if each not in standing.values()]
        chance.shuffle(left)
        filled: dict[int, str] = {}
        for place, former in places.items():
            if not left:
                break
            around = [
                self._location(bookie_id)
                for index, bookie_id in standing.items()
                if min((index - place) % ensemble_size, (place - index) % ensemble_size)
                < write_quorum_size
            ]
            rack = self._local_rack if former is None and not standing else None
            if former is not None:
                rack = self._location(former)[1]
            costs = {
                each: (is_avoided(each), *self._crowding(each, around), self._is_not_in(each, rack))
                for each in left
            }
            best = min(left, key=costs.__getitem__)
            left.remove(best)
            filled[place] = standing[place] = best
        return filled

    def _crowding(self, bookie_id: str, around: Sequence[tuple[str, str]]) -> tuple[int, int]:
        region, rack = self._location(bookie_id)
        same_region = [each for each in around if each[0] == region]
        return len(same_region), sum(each[1] == rack for each in same_region)

    def _is_not_in(self, bookie_id: str, rack: str | None) -> bool:
        return rack is not None and self._location(bookie_id)[1] != rack

    def has_enough_racks(self, ensemble: Sequence[str], write_quorum_size: int) -> bool:
        """Whether each write set lies on as many racks as are enforced, if any are."""
        settings = self.settings
        if not settings.enforces_min_racks:
            return True
        wanted = min(settings.min_racks_per_write_quorum, write_quorum_size)
        size = len(ensemble)
        return all(
            len({self._location(ensemble[i]) for i in write_set(entry_id, size, write_quorum_size)})
            >= wanted
            for entry_id in range(size)
        )

    def read_order(
        self,
        bookie_ids: Sequence[str],
        *,
        is_failing: Callable[[str], bool],
        is_avoided: Callable[[str], bool],
        read_only: Collection[str],
    ) -> list[str]:
        """Replicas in the order in which they are asked."""
        local = self._local_rack if self.settings.reorders_reads else None

        def cost(bookie_id: str) -> tuple[bool, bool, bool, bool]:
            return (
                is_failing(bookie_id),
                is_avoided(bookie_id),
                bookie_id in read_only,
                self._is_not_in(bookie_id, local),
            )

        return sorted(bookie_ids, key=cost)
