"""Chooses the broker that takes a bundle which nobody owns (pure).

Of the brokers that may take it (`isolation`), those come into question that have the fewest topics
of its namespace, those of choices included; of those, brokers with too many topics, or with a
resource at 85 % or more, are left out where there are others, and the one with the fewest messages
a second over a long time is chosen, by chance among equals.

A bundle weighs as many topics as its last owner reported. One that nobody reported weighs what the
others of the namespace do on average, at least 1. What a broker was chosen for in the last
`TAKEOVER_SECONDS` counts thrice, but for the first `QUICK_TOPICS`: opening topics is work, and if a
broker without topics, which was started again, took over everything of the next one that dies, its
clients would wait for twice as long as if those with topics help. Apache Pulsar counts bundles,
each as one.

A choice is remembered until the chosen broker's report shows the
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

TAKEOVER_SECONDS: Final = 60.0
"""For which the topics of a choice count as work to be done."""
TAKEOVER_WEIGHT: Final = 2.0
"""How often they count meanwhile, beside being topics of that broker."""
QUICK_TOPICS: Final = 50
"""Of them, those that are no work worth mentioning."""
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
    topics_of: Callable[[str], int | None] = lambda _: None
    """The topics of a bundle as it was last reported, by whoever had it; None if it was not."""


class _Choice(Struct, frozen=True):
    """Who shall take a bundle."""

    broker_id: str
    topics_count: float
    at: float


_NOBODY: Final = _Choice("", 0.0, 0.0)


class BundlePlacement:
    """The choices of one broker."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._chosen: dict[str, _Choice] = {}  # by bundle, the oldest first; not reported yet
        self._taking: dict[str, _Choice] = {}  # the same of the last seconds, reported or not
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
        now: float = 0.0,
    ) -> str | None:
        """The id of the broker that shall take `tenant/namespace/range`; None if there is none.

        Of all `brokers` only `allowed` ones are chosen; None: any.
        """
        loads = loads or KnownLoads()
        self._forget_reported(brokers)
        self._forget_taken(now)
        candidates = {
            broker_id: report
            for broker_id, report in brokers.items()
            if allowed is None or broker_id in allowed
        }
        if not candidates:
            return None
        topics_count = _expected_topics(bundle, brokers, loads)
        broker_id = self._intended.pop(bundle, None)
        before = self._chosen.get(bundle, _NOBODY)
        if broker_id not in candidates and before.broker_id in candidates:
            return before.broker_id
        if broker_id not in candidates:
            broker_id = self._least_loaded(
                bundle,
                topics_count,
                candidates,
                rules=rules or PlacementRules(),
                apart=apart,
                loads=loads,
            )
        assert broker_id is not None, "one of the candidates"
        choice = _Choice(broker_id, topics_count, now)
        for choices in (self._chosen, self._taking):
            choices.pop(bundle, None)
            choices[bundle] = choice
            if len(choices) > MAX_REMEMBERED:
                del choices[next(iter(choices))]
        return broker_id

    def _least_loaded(
        self,
        bundle: str,
        topics_count: float,
        brokers: Mapping[str, BrokerReport],
        *,
        rules: PlacementRules,
        apart: AntiAffinity | None,
        loads: KnownLoads,
    ) -> str:
        candidates: Collection[str] = list(brokers)
        if apart is not None:
            candidates = kept_apart(candidates, apart.counts, apart.domains)
        if rules.is_even:
            candidates = self._with_fewest_of_namespace(bundle, topics_count, brokers, candidates)
        candidates = [
            each for each in candidates if brokers[each].topics_count < rules.max_topics
        ] or candidates
        fit = [each for each in candidates if brokers[each].usage < rules.overloaded_share]
        if not fit:  # better an idle broker with more bundles of the namespace
            fit = [each for each in brokers if brokers[each].usage < rules.overloaded_share]
        fit = fit or list(candidates)
        rates = {each: loads.rate_of(brokers[each]) for each in fit}
        for each, choice in self._chosen.items():
            if choice.broker_id in rates:
                rates[choice.broker_id] += loads.data_of(each).long.messages_rate
        least = min(rates.values())
        return self._chance.choice(sorted(each for each in fit if rates[each] == least))

    def _forget_reported(self, brokers: Mapping[str, BrokerReport]) -> None:
        reported = [
            bundle
            for bundle, choice in self._chosen.items()
            if choice.broker_id not in brokers or bundle in brokers[choice.broker_id].bundles
        ]
        for bundle in reported:
            del self._chosen[bundle]

    def _forget_taken(self, now: float) -> None:
        for bundle, choice in list(self._taking.items()):
            if now - choice.at < TAKEOVER_SECONDS:
                return  # those behind it are newer
            del self._taking[bundle]

    def _with_fewest_of_namespace(
        self,
        bundle: str,
        topics_count: float,
        brokers: Mapping[str, BrokerReport],
        candidates: Collection[str],
    ) -> Collection[str]:
        """Those of the candidates that differ from the best one by less than half of the bundle."""
        prefix = bundle.rpartition("/")[0] + "/"
        counts = {
            broker_id: sum(
                float(max(stats.topics_count, 1))
                for name, stats in brokers[broker_id].bundles.items()
                if name.startswith(prefix) and name != bundle
            )
            for broker_id in candidates
        }
        for chosen, choice in self._chosen.items():
            if chosen.startswith(prefix) and chosen != bundle and choice.broker_id in counts:
                counts[choice.broker_id] += choice.topics_count
        work = dict.fromkeys(counts, 0.0)
        for taken, choice in self._taking.items():
            if taken != bundle and choice.broker_id in work:
                work[choice.broker_id] += choice.topics_count
        for broker_id, opening_count in work.items():
            counts[broker_id] += TAKEOVER_WEIGHT * max(opening_count - QUICK_TOPICS, 0)
        fewest = min(counts.values())
        return [each for each, count in counts.items() if count < fewest + topics_count / 2]


def _expected_topics(bundle: str, brokers: Mapping[str, BrokerReport], loads: KnownLoads) -> float:
    """The topics that a bundle has, or will have once their clients are back."""
    count = loads.topics_of(bundle)
    if count is not None:
        return max(count, 1)
    prefix = bundle.rpartition("/")[0] + "/"
    known = [
        stats.topics_count
        for report in brokers.values()
        for name, stats in report.bundles.items()
        if name.startswith(prefix)
    ]
    return max(sum(known) / len(known), 1.0) if known else 1.0
