"""Chooses the broker that takes a bundle which nobody owns (pure).

Of the brokers that may take it (`isolation`), those come into question that have the fewest bundles
of its namespace; of those, brokers with too many topics, or with a resource at 85 % or more, are
left out where there are others, and the one with the fewest messages a second over a long time is
chosen, by chance among equals. A choice is remembered until the chosen broker's report shows the
bundle, so that many choices in a row do not all fall on the same broker. Until then it stands: the
clients of all topics of a bundle ask at the same time, and if each were sent somewhere else, the
chooser itself, who needs no further request to take it, would end up with nearly everything.

The leader may be told beforehand where a bundle shall go (`intend`): whoever moves it has chosen.

Source: ModularLoadManagerImpl.selectBroker, LeastLongTermMessageRate,
LoadManagerShared.removeMostServicingBrokersForNamespace in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import Final

from msgspec import Struct

from pulsar_py.server.load.averages import UNREPORTED, BundleData
from pulsar_py.server.load.broker_report import BrokerReport
from pulsar_py.server.load.isolation import kept_apart

MAX_REMEMBERED: Final = 100_000
"""Choices that are remembered; the oldest is forgotten first."""


class PlacementRules(Struct, frozen=True, kw_only=True):
    """The settings of placement."""

    is_even: bool = True
    """Whether the brokers with the fewest bundles of the namespace come first."""
    max_topics: int = 50_000
    overloaded_share: float = 0.85
    """Of a resource, from which on a broker gets no bundle where there are others."""
    uses_domains: bool = False
    """Whether failure domains count."""


class AntiAffinity(Struct, frozen=True, kw_only=True):
    """Where the namespaces of a group are now, and what keeps them apart."""

    counts: Mapping[str, int]
    """Namespaces of the group by broker id."""
    domains: Mapping[str, Collection[str]] = {}
    """Brokers by failure domain; none if domains do not count."""


class KnownLoads(Struct, frozen=True, kw_only=True):
    """What is known of the load of bundles and brokers."""

    data_of: Callable[[str], BundleData] = lambda _: UNREPORTED
    """The mean load of a bundle."""
    rate_of: Callable[[BrokerReport], float] = lambda report: report.messages_rate
    """The mean messages in and out a second of a broker."""


class BundlePlacement:
    """The choices of one broker."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._chosen: dict[str, str] = {}  # bundle -> broker id, the oldest first
        self._intended: dict[str, str] = {}  # the same, of bundles that are on their way

    def intend(self, bundle: str, broker_id: str) -> None:
        """Have the next choice for a bundle be this broker, if it is there then."""
        self._intended.pop(bundle, None)
        self._intended[bundle] = broker_id
        if len(self._intended) > MAX_REMEMBERED:
            del self._intended[next(iter(self._intended))]

    def choose(
        self,
        bundle: str,
        brokers: Mapping[str, BrokerReport],
        *,
        allowed: Collection[str] | None = None,
        rules: PlacementRules | None = None,
        apart: AntiAffinity | None = None,
        loads: KnownLoads | None = None,
    ) -> str | None:
        """The id of the broker that shall take `tenant/namespace/range`; None if there is none.

        Of all `brokers` only `allowed` ones are chosen; None: any.
        """
        self._forget_reported(brokers)
        candidates = {
            broker_id: report
            for broker_id, report in brokers.items()
            if allowed is None or broker_id in allowed
        }
        if not candidates:
            return None
        choice = self._intended.pop(bundle, None) or self._chosen.get(bundle)
        if choice not in candidates:
            choice = self._least_loaded(
                bundle, candidates, rules or PlacementRules(), apart, loads or KnownLoads()
            )
        self._chosen.pop(bundle, None)
        self._chosen[bundle] = choice
        if len(self._chosen) > MAX_REMEMBERED:
            del self._chosen[next(iter(self._chosen))]
        return choice

    def _least_loaded(
        self,
        bundle: str,
        brokers: Mapping[str, BrokerReport],
        rules: PlacementRules,
        apart: AntiAffinity | None,
        loads: KnownLoads,
    ) -> str:
        candidates: Collection[str] = list(brokers)
        if apart is not None:
            candidates = kept_apart(candidates, apart.counts, apart.domains)
        if rules.is_even:
            candidates = self._with_fewest_of_namespace(bundle, brokers, candidates)
        candidates = [
            each for each in candidates if brokers[each].topics_count < rules.max_topics
        ] or candidates
        fit = [each for each in candidates if brokers[each].usage < rules.overloaded_share]
        if not fit:  # better an idle broker with more bundles of the namespace
            fit = [each for each in brokers if brokers[each].usage < rules.overloaded_share]
        fit = fit or list(candidates)
        rates = {each: loads.rate_of(brokers[each]) for each in fit}
        for each, broker_id in self._chosen.items():
            if broker_id in rates:
                rates[broker_id] += loads.data_of(each).long.messages_rate
        least = min(rates.values())
        return self._chance.choice(sorted(each for each in fit if rates[each] == least))

    def _forget_reported(self, brokers: Mapping[str, BrokerReport]) -> None:
        reported = [
            bundle
            for bundle, broker_id in self._chosen.items()
            if broker_id not in brokers or bundle in brokers[broker_id].bundles
        ]
        for bundle in reported:
            del self._chosen[bundle]

    def _with_fewest_of_namespace(
        self, bundle: str, brokers: Mapping[str, BrokerReport], candidates: Collection[str]
    ) -> Collection[str]:
        prefix = bundle.rpartition("/")[0] + "/"
        counts = {
            broker_id: sum(
                name.startswith(prefix) and name != bundle for name in brokers[broker_id].bundles
            )
            for broker_id in candidates
        }
        for chosen, broker_id in self._chosen.items():
            if chosen.startswith(prefix) and chosen != bundle and broker_id in counts:
                counts[broker_id] += 1
        fewest = min(counts.values())
        return [broker_id for broker_id, count in counts.items() if count == fewest]
