"""Which bookies a ledger gets. Pure.

At random among those that take entries; those whose last news was a failure only where there are
too few others. Racks and regions are not looked at.

Source: DefaultEnsemblePlacementPolicy in Apache BookKeeper.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random

from pulsar_py.common.errors import NotEnoughBookiesError


def choose(
    count: int,
    writable: Collection[str],
    *,
    excluded: Collection[str] = (),
    is_suspect: Callable[[str], bool],
    chance: Random,
) -> list[str]:
    """So many different bookies.

    Raises:
        NotEnoughBookiesError: There are fewer.
    """
    left = [bookie_id for bookie_id in writable if bookie_id not in excluded]
    if len(left) < count:
        without = f" beside the {len(excluded)} that are in use or failed" if excluded else ""
        raise NotEnoughBookiesError(
            f"{count} bookies are needed, {len(left)} take entries{without}"
        )
    chance.shuffle(left)
    left.sort(key=is_suspect)  # keeps the order of those alike
    return left[:count]
