"""Chooses the bookies that a ledger may use by its bookie affinity groups (pure).

Groups come from the settings (`bookkeeperClientIsolationGroups`), or from the ledger's own label
`EnsemblePlacementPolicyConfig`, which a namespace's bookie affinity sets: it is kept with the
ledger so that a replacement later follows the same groups. Bookies of the primary groups are
preferred; if they are too few those of the secondary groups are allowed, too, and if all of these
are too few, bookies of no group. The group `*` means all bookies.

Source: IsolatedBookieEnsemblePlacementPolicy, EnsemblePlacementPolicyConfig in Apache Pulsar.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pulsar_py.bookkeeper.placement.rack_map import RackMap
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.ledgers.labels import (
    ENSEMBLE_PLACEMENT_POLICY,
    ISOLATION_GROUPS,
    ISOLATION_POLICY_CLASS,
    SECONDARY_ISOLATION_GROUPS,
)

logger = logging.getLogger(__name__)

_ALL = "*"


@dataclass(frozen=True, slots=True)
class IsolationGroups:
    """The groups that a ledger is bound to; none means all bookies."""

    primary: Collection[str] = ()
    secondary: Collection[str] = ()

    def allowed(self, bookie_ids: Sequence[str], racks: RackMap, *, wanted: int) -> list[str]:
        """The bookies that a ledger with an ensemble of this size may use, in their order."""
        if not self.primary or _ALL in self.primary:
            return list(bookie_ids)
        groups = list(self.primary)
        found = [each for each in bookie_ids if racks.is_in(each, groups)]
        if len(found) < wanted:
            groups += self.secondary
            found = [each for each in bookie_ids if racks.is_in(each, groups)]
        if len(found) < wanted:
            found = [
                each
                for each in bookie_ids
                if racks.is_in(each, groups) or not racks.has_group(each)
            ]
        return found


def isolation_of(custom_metadata: Mapping[str, bytes], default: IsolationGroups) -> IsolationGroups:
    """The groups that a ledger with these labels is bound to.

    A label that can't be read, or names another policy, is passed over: the ledger is better on
    any bookie than nowhere.
    """
    value = custom_metadata.get(ENSEMBLE_PLACEMENT_POLICY)
    if value is None:
        return default
    try:
        document = parse_json(value)
        if document["policyClass"] != ISOLATION_POLICY_CLASS:
            return default
        properties = document["properties"]
        return IsolationGroups(
            _names(properties.get(ISOLATION_GROUPS)),
            _names(properties.get(SECONDARY_ISOLATION_GROUPS)),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        logger.warning("placement policy of a ledger can't be read", extra={"error": repr(error)})
        return default


def _names(value: object) -> tuple[str, ...]:
    """The groups of a property: a text with commas, or a list."""
    if value is None:
        return ()
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list):
        raise TypeError(f"groups are a text or a list, not {type(value).__name__}")
    return tuple(str(word).strip() for word in words if str(word).strip())
