"""Which broker shall take a bundle that nobody owns (pure).

Brokers that have the fewest bundles of its namespace come into question; of those, brokers with a
resource at 85 % or more are left out where there are others, and the one with the fewest messages a
second is chosen, by chance among equals. A choice is remembered until the chosen broker's report
shows the bundle, so that many choices in a row do not all fall on the same broker.

Source: ModularLoadManagerImpl.selectBroker, LeastLongTermMessageRate,
LoadManagerShared.removeMostServicingBrokersForNamespace in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from random import Random
from typing import Final

from pulsar_py.server.load.broker_report import BrokerReport

OVERLOADED_SHARE: Final = 0.85
"""Of a resource, from which on a broker gets no bundle where there are others."""
MAX_REMEMBERED: Final = 100_000
"""Choices that are remembered; the oldest is forgotten first."""


class BundlePlacement:
    """The choices of one broker."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._chosen: dict[str, str] = {}  # bundle -> broker id, the oldest first

    def choose(self, bundle: str, brokers: Mapping[str, BrokerReport]) -> str | None:
        """The id of the broker that shall take `tenant/namespace/range`; None without brokers."""
        self._forget_reported(brokers)
        if not brokers:
            return None
        candidates = self._with_fewest_of_namespace(bundle, brokers)
        fit = [each for each in candidates if brokers[each].usage < OVERLOADED_SHARE] or candidates
        rates = {each: brokers[each].messages_rate for each in fit}
        least = min(rates.values())
        choice = self._chance.choice(sorted(each for each in fit if rates[each] == least))
        self._chosen.pop(bundle, None)
        self._chosen[bundle] = choice
        if len(self._chosen) > MAX_REMEMBERED:
            del self._chosen[next(iter(self._chosen))]
        return choice

    def _forget_reported(self, brokers: Mapping[str, BrokerReport]) -> None:
        reported = [
            bundle
            for bundle, broker_id in self._chosen.items()
            if broker_id not in brokers or bundle in brokers[broker_id].bundles
        ]
        for bundle in reported:
            del self._chosen[bundle]

    def _with_fewest_of_namespace(
        self, bundle: str, brokers: Mapping[str, BrokerReport]
    ) -> Collection[str]:
        prefix = bundle.rpartition("/")[0] + "/"
        counts = {
            broker_id: sum(name.startswith(prefix) and name != bundle for name in report.bundles)
            for broker_id, report in brokers.items()
        }
        for chosen, broker_id in self._chosen.items():
            if chosen.startswith(prefix) and chosen != bundle:
                counts[broker_id] += 1
        fewest = min(counts.values())
        return [broker_id for broker_id, count in counts.items() if count == fewest]
