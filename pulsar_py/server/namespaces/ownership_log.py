"""`OwnershipLog`: the time since when each bundle is owned, and recent gains and losses (pure).

Operators read it: after an outage it says which broker had what, and why that changed. It holds
the bundles that are owned and the last `MAX_CHANGES` changes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

MAX_CHANGES: Final = 200

TAKEN: Final = "nobody owned it"
TAKEN_UP: Final = "its creation was answered late"
UNLOADED: Final = "unloaded"
HANDED_OVER: Final = "handed over: this broker leaves"
SPLIT: Final = "split"
LOST: Final = "another broker owns it"


class OwnershipChange(Struct, frozen=True):
    """One bundle that came or went."""

    at_millis: int
    bundle: str
    """`tenant/namespace/range`."""
    is_gain: bool
    reason: str


class OwnershipLog:
    """The log of one broker; its `BundleOwnership` writes it."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}  # owned bundles: milliseconds
        self.changes: deque[OwnershipChange] = deque(maxlen=MAX_CHANGES)
        """What was gained and lost, the oldest first."""
        self.counts: Counter[tuple[bool, str]] = Counter()
        """How often: whether it was a gain, and why."""

    @property
    def since_millis(self) -> Mapping[str, int]:
        """The bundles that are owned, and since when."""
        return self._since

    def gained(self, bundle: str, reason: str, *, now_millis: int) -> None:
        """Note a bundle that came; does nothing if it is here already."""
        if bundle not in self._since:
            self._since[bundle] = now_millis
            self._note(OwnershipChange(now_millis, bundle, True, reason))

    def lost(self, bundle: str, reason: str, *, now_millis: int) -> None:
        """Note a bundle that went; does nothing if it was not here."""
        if self._since.pop(bundle, None) is not None:
            self._note(OwnershipChange(now_millis, bundle, False, reason))

    def _note(self, change: OwnershipChange) -> None:
        self.changes.append(change)
        self.counts[change.is_gain, change.reason] += 1
