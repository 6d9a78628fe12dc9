"""`RackMap`: the groups, racks and regions of bookies, and their stored form (pure).

The value of `/bookies` is JSON that operators write by `bookies/racks-info`:

    {"group": {"host:port": {"rack": "/rack", "hostname": "..."}, ...}, ...}

With regions a rack is `/region/rack`. A bookie is found by its id, else by its host. One that is
not in the map is in a default rack. A bookie may be in several groups; the last one's rack counts.

Source: BookieRackAffinityMapping, BookiesRackConfiguration in Apache Pulsar; NetworkTopology in
Apache BookKeeper.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.foreign_json import parse_json

DEFAULT_RACK: Final = "/default-rack"
DEFAULT_REGION: Final = "/default-region"


@dataclass(frozen=True, slots=True)
class RackMap:
    """One version of the map."""

    groups: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The ids of each group."""
    racks: Mapping[str, str] = field(default_factory=dict)
    """By id, and by host: each begins with a slash."""

    @classmethod
    def parse(cls, path: str, value: bytes) -> RackMap:
        """Read the value of a key; `path` is for the message.

        Raises:
            CorruptDataError: It is not such a map.
        """
        try:
            document = parse_json(value) if value else {}
        except ValueError as error:
            raise CorruptDataError(f"{path}: the rack map is no JSON: {error}") from error
        groups: dict[str, dict[str, None]] = {}
        racks: dict[str, str] = {}
        if not isinstance(document, dict):
            raise CorruptDataError(f"{path}: the rack map is {type(document).__name__}, no object")
        for group, bookies in document.items():
            if not isinstance(bookies, dict):
                raise CorruptDataError(f"{path}: the group {group!r} of the rack map is no object")
            groups[group] = dict.fromkeys(bookies)
            for bookie_id, info in bookies.items():
                rack = info.get("rack") if isinstance(info, dict) else None
                if isinstance(rack, str) and rack.strip("/"):
                    racks[bookie_id] = "/" + rack.strip("/")
                    racks.setdefault(bookie_id.rpartition(":")[0], racks[bookie_id])
        return cls(groups, racks)

    def rack_of(self, bookie_id: str) -> str:
        """The rack of a bookie, or of a host."""
        rack = self.racks.get(bookie_id)
        if rack is None:
            rack = self.racks.get(bookie_id.rpartition(":")[0])
        return DEFAULT_RACK if rack is None else rack

    def region_of(self, bookie_id: str) -> str:
        """The region of a bookie, or of a host: what stands before its rack."""
        region = self.rack_of(bookie_id).rpartition("/")[0]
        return region or DEFAULT_REGION

    def is_in(self, bookie_id: str, groups: Collection[str]) -> bool:
        """Whether a bookie is in one of these groups."""
        return any(bookie_id in self.groups.get(group, ()) for group in groups)

    def has_group(self, bookie_id: str) -> bool:
        """Whether a bookie is in any group."""
        return any(bookie_id in group for group in self.groups.values())
