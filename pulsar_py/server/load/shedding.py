"""Chooses the bundles that leave a busy broker, so that load evens out (pure).

    threshold   a broker whose usage is 10 % above the mean of all gives up what brings it 5 %
                below that line, its busiest bundles first
    overload    a broker above 85 % gives up what brings it 5 % below that
    uniform     the broker with the most messages or bytes gives some to the one with the least

A broker's last bundle stays. What was moved a while ago stays, too. Of how much a bundle brings the
means of its last reports tell, in proportion: together they are what its broker reports now. (A
bundle that came a moment ago has reports without load. Taken as they are, nearly all bundles of a
broker would have to go for half of its messages.) The usage of a broker is that
of its busiest resource by weight; for the threshold it is smoothed over its reports.

Source: ThresholdShedder, OverloadShedder, UniformLoadShedder in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from msgspec import Struct

from pulsar_py.server.load.averages import UNREPORTED, BundleData, TimeAverage
from pulsar_py.server.load.broker_report import BrokerReport, BundleStats

MARGIN_SHARE: Final = 0.05
"""By which more than the excess is moved, so that it is not needed again at once."""

_MEBIBYTE: Final = 1024 * 1024


class UsageWeights(Struct, frozen=True, kw_only=True):
    """How much each resource counts."""

    cpu: float = 1.0
    memory: float = 0.0
    bandwidth_in: float = 1.0
    bandwidth_out: float = 1.0

    def usage_of(self, report: BrokerReport) -> float:
        """The share in use of the busiest resource, 0 to 1 or above."""
        return max(
            report.cpu.share * self.cpu,
            report.memory.share * self.memory,
            report.bandwidth_in.share * self.bandwidth_in,
            report.bandwidth_out.share * self.bandwidth_out,
        )


class SheddingRules(Struct, frozen=True, kw_only=True):
    """The settings of all three ways."""

    strategy: str = "ThresholdShedder"
    weights: UsageWeights = UsageWeights()
    threshold_share: float = 0.1
    history_weight: float = 0.9
    min_mebibytes_rate: float = 10.0
    has_lower_boundary: bool = False
    overloaded_share: float = 0.85
    max_rate_difference_share: float = 0.5
    """0: not by messages."""
    max_throughput_factor: float = 4.0
    """0: not by bytes."""
    min_messages: int = 1000
    min_bytes: int = _MEBIBYTE
    max_moved_share: float = 0.2
    max_bundles: int = -1


class Shed(Struct, frozen=True):
    """A bundle that leaves its broker."""

    broker_id: str
    bundle: str
    """`tenant/namespace/range`."""
    reason: str
    """In words, with figures; for operators."""


class Situation(Struct, frozen=True):
    """The input of one round of shedding."""

    brokers: Mapping[str, BrokerReport]
    data: Mapping[str, BundleData]
    """The mean load of bundles."""
    kept: Collection[str] = frozenset()
    """Bundles that stay where they are."""


class Shedder:
    """One leader's rounds of shedding; a new leader begins with a new one."""

    def __init__(self) -> None:
        self._usage: dict[str, float] = {}  # by broker id: smoothed

    def choose(self, rules: SheddingRules, now: Situation) -> list[Shed]:
        """Choose the bundles of one round."""
        self._smooth(rules, now.brokers)
        if len(now.brokers) < 2:  # noqa: PLR2004 - nobody could take anything
            return []
        if rules.strategy == "OverloadShedder":
            return _overloaded(rules, now)
        if rules.strategy == "UniformLoadShedder":
            return _uneven(rules, now)
        return self._above_threshold(rules, now)

    def usage_of(self, broker_id: str) -> float | None:
        """A broker's smoothed usage; None of one that no round has seen."""
        return self._usage.get(broker_id)

    def _smooth(self, rules: SheddingRules, brokers: Mapping[str, BrokerReport]) -> None:
        weight = rules.history_weight
        smoothed = {}
        for broker_id, report in brokers.items():
            now = rules.weights.usage_of(report)
            before = self._usage.get(broker_id)
            smoothed[broker_id] = now if before is None else weight * before + (1 - weight) * now
        self._usage = smoothed

    def _above_threshold(self, rules: SheddingRules, now: Situation) -> list[Shed]:
        mean = sum(self._usage.values()) / len(self._usage)
        line = mean + rules.threshold_share
        found: list[Shed] = []
        for broker_id, report in now.brokers.items():
            usage = self._usage[broker_id]
            if mean == 0 or usage < line:
                continue
            share = usage - line + MARGIN_SHARE
            wanted = throughput_of(report) * share
            if wanted < rules.min_mebibytes_rate * _MEBIBYTE:
                continue
            reason = f"usage {usage:.0%} is above the mean {mean:.0%} + {rules.threshold_share:.0%}"
            found += _busiest(now, report, Wanted(wanted, throughput_of(report), reason))
        if not found and rules.has_lower_boundary:
            found = self._for_idlest(rules, now, mean)
        return found

    def _for_idlest(self, rules: SheddingRules, now: Situation, mean: float) -> list[Shed]:
        """What the busiest gives up for one far below the mean."""
        idlest = min(self._usage, key=lambda each: self._usage[each])
        busiest = max(self._usage, key=lambda each: self._usage[each])
        if self._usage[idlest] >= mean - rules.threshold_share:
            return []
        wanted = throughput_of(now.brokers[busiest]) * rules.threshold_share * MARGIN_SHARE
        reason = f"usage {self._usage[idlest]:.0%} of {idlest} is far below the mean {mean:.0%}"
        total = throughput_of(now.brokers[busiest])
        return _busiest(now, now.brokers[busiest], Wanted(wanted, total, reason))


Loads = dict[str, tuple[float, float]]
"""Messages and bytes a second by broker id."""


def idler_than(
    rules: SheddingRules, shed: Shed, brokers: Mapping[str, BrokerReport], moved: Loads
) -> list[BrokerReport]:
    """The brokers that are better off than a bundle's owner, by what these rules even out.

    By messages and bytes they have to be so with the bundle, too, and with what was moved to them
    in the same round: where those with the least may take nothing, the others must not get it all.
    """
    owner = brokers[shed.broker_id]
    if rules.strategy != "UniformLoadShedder":
        usage_of = rules.weights.usage_of
        return [each for each in brokers.values() if usage_of(each) < usage_of(owner)]
    own, bundle = _load_of(owner, moved), load_of_bundle(owner, shed.bundle)
    return [
        each
        for each in brokers.values()
        if each is not owner
        and any(
            load + added <= limit
            for load, added, limit in zip(_load_of(each, moved), bundle, own, strict=True)
            if added
        )
    ]


def _load_of(report: BrokerReport, moved: Loads) -> tuple[float, float]:
    messages, size = moved.get(report.broker_id, (0.0, 0.0))
    return report.messages_rate + messages, throughput_of(report) + size


def load_of_bundle(owner: BrokerReport, bundle: str) -> tuple[float, float]:
    """The messages and bytes a second of a bundle, as its owner reported it."""
    stats = owner.bundles.get(bundle, BundleStats())
    return (
        stats.messages_in_rate + stats.messages_out_rate,
        stats.bytes_in_rate + stats.bytes_out_rate,
    )


def note_move(moved: Loads, owner: BrokerReport, bundle: str, destination: str) -> None:
    """Count a bundle that was moved to that broker in this round."""
    load = load_of_bundle(owner, bundle)
    for broker_id, sign in ((owner.broker_id, -1), (destination, 1)):
        messages, size = moved.get(broker_id, (0.0, 0.0))
        moved[broker_id] = messages + sign * load[0], size + sign * load[1]


def throughput_of(report: BrokerReport) -> float:
    """A broker's bytes in and out a second."""
    return sum(each.bytes_in_rate + each.bytes_out_rate for each in report.bundles.values())


class Wanted(Struct, frozen=True):
    """The load that has to leave a broker, and the reason."""

    amount: float
    total: float
    """What the broker has of it now."""
    reason: str
    measure: Callable[[TimeAverage], float] = lambda average: average.bytes_rate
    """The load of a bundle, in the unit of `amount`."""


def _busiest(now: Situation, report: BrokerReport, wanted: Wanted) -> list[Shed]:
    """The busiest bundles of a broker that make up what is wanted, at least one of several."""
    movable = [each for each in report.bundles if each not in now.kept]
    if len(report.bundles) < 2:  # noqa: PLR2004 - the last one stays
        return []
    means = {each: wanted.measure(now.data.get(each, UNREPORTED).short) for each in report.bundles}
    sum_of_means = sum(means.values())
    factor = wanted.total / sum_of_means if sum_of_means else 0.0
    loads = {each: means[each] * factor for each in movable}
    found: list[Shed] = []
    moved = 0.0
    for bundle in sorted(movable, key=lambda each: (-loads[each], each)):
        if found and moved >= wanted.amount:
            break
        if len(found) == len(report.bundles) - 1:
            break
        found.append(Shed(report.broker_id, bundle, wanted.reason))
        moved += loads[bundle]
    return found


def _overloaded(rules: SheddingRules, now: Situation) -> list[Shed]:
    found: list[Shed] = []
    for report in now.brokers.values():
        usage = rules.weights.usage_of(report)
        if usage > rules.overloaded_share:
            share = usage - rules.overloaded_share + MARGIN_SHARE
            reason = f"usage {usage:.0%} is above {rules.overloaded_share:.0%}"
            total = throughput_of(report)
            found += _busiest(now, report, Wanted(total * share, total, reason))
    return found


def _uneven(rules: SheddingRules, now: Situation) -> list[Shed]:
    """What the broker with the most gives up, by messages, or else by bytes."""
    rates = {broker_id: report.messages_rate for broker_id, report in now.brokers.items()}
    busiest, least = max(rates, key=lambda each: rates[each]), min(rates.values())
    amount = (rates[busiest] - least) * rules.max_moved_share
    is_far = rates[busiest] > least * (1 + rules.max_rate_difference_share)
    if rules.max_rate_difference_share and is_far and amount >= rules.min_messages:
        reason = f"{rates[busiest]:.0f} messages a second are far more than {least:.0f} of another"
        by_messages = Wanted(amount, rates[busiest], reason, lambda average: average.messages_rate)
        return _at_most(rules, _busiest(now, now.brokers[busiest], by_messages))
    flows = {broker_id: throughput_of(report) for broker_id, report in now.brokers.items()}
    busiest, least = max(flows, key=lambda each: flows[each]), min(flows.values())
    amount = (flows[busiest] - least) * rules.max_moved_share
    is_far = flows[busiest] > least * rules.max_throughput_factor
    if rules.max_throughput_factor and is_far and amount >= rules.min_bytes:
        reason = f"{flows[busiest]:.0f} bytes a second are far more than {least:.0f} of another"
        wanted = Wanted(amount, flows[busiest], reason)
        return _at_most(rules, _busiest(now, now.brokers[busiest], wanted))
    return []


def _at_most(rules: SheddingRules, found: list[Shed]) -> list[Shed]:
    return found if rules.max_bundles < 0 else found[: rules.max_bundles]
