"""Decides when an address that nobody reaches is tried again (pure).

All producers, consumers and lookups of an address share its attempts: whoever wants a connection
while it is away waits for the next one. So a broker is probed as often as if one producer waited
for it, and everybody learns at once that it is back.
"""

from __future__ import annotations

from collections.abc import Hashable
from random import Random

from pulsar_py.common.backoff import Backoff

__all__ = ["Outages"]


class Outages:
    """The addresses where the last attempt failed; owned by the connection pool."""

    def __init__(self) -> None:
        # By address: what gives the delays, and when the next attempt may begin.
        self._outages: dict[Hashable, tuple[Backoff, float]] = {}

    def __contains__(self, address: Hashable) -> bool:
        return address in self._outages

    def wait_seconds(self, address: Hashable, now: float) -> float:
        """How long the next attempt has to wait; 0 where the last one succeeded."""
        outage = self._outages.get(address)
        return 0.0 if outage is None else max(outage[1] - now, 0.0)

    def on_failure(
        self,
        address: Hashable,
        now: float,
        *,
        chance: Random,
        initial_seconds: float,
        maximum_seconds: float,
    ) -> bool:
        """An attempt failed; returns whether it is the first one in a row."""
        outage = self._outages.get(address)
        if outage is None:
            backoff = Backoff(
                chance, initial_seconds=initial_seconds, maximum_seconds=maximum_seconds
            )
        else:
            backoff = outage[0]
        self._outages[address] = (backoff, now + backoff.next_delay(now))
        return outage is None

    def on_success(self, address: Hashable) -> bool:
        """An attempt succeeded; returns whether the ones before had failed."""
        return self._outages.pop(address, None) is not None
