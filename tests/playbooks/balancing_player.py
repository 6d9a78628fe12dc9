"""Drives placement, shedding and the choice of large bundles from lines of text.

A broker is written `a cpu=90 in=20 n/1=5MB n/2=1MB`: percent of a core, bundles of the namespace
`t/n` with bytes a second, half of them in and half out. `n/1=5MB,3000m,40t,7s` has messages a
second, topics and sessions, too.
"""

from __future__ import annotations

import random
import re
from typing import Any

from pulsar_py.server.load.averages import BundleData
from pulsar_py.server.load.broker_report import BrokerReport, BundleStats, ResourceUsage
from pulsar_py.server.load.isolation import allowed_brokers, read_policies
from pulsar_py.server.load.large_bundles import SplitRules, large_bundles
from pulsar_py.server.load.placement import AntiAffinity, BundlePlacement, PlacementRules
from pulsar_py.server.load.shedding import Shedder, SheddingRules, Situation

_MEGABYTE = 1024 * 1024
_FIGURE = re.compile(r"([\d.]+)(MB|m|t|s)")


def stats_of(text: str) -> BundleStats:
    found = {unit: float(number) for number, unit in _FIGURE.findall(text)}
    flow, messages = found.get("MB", 0.0) * _MEGABYTE, found.get("m", 0.0)
    return BundleStats(
        bytes_in_rate=flow / 2,
        bytes_out_rate=flow / 2,
        messages_in_rate=messages / 2,
        messages_out_rate=messages / 2,
        topics_count=int(found.get("t", 1)),
        producers_count=int(found.get("s", 0)),
    )


class BalancingPlayer:
    def __init__(self) -> None:
        self.brokers: dict[str, BrokerReport] = {}
        self.data: dict[str, BundleData] = {}
        self.kept: set[str] = set()
        self.shedder = Shedder()
        self.placement = BundlePlacement(random.Random(1))
        self.policies: dict[str, Any] = {}
        self.rules = SheddingRules()
        self.placement_rules = PlacementRules()
        self.apart: AntiAffinity | None = None

    def execute(self, line: str) -> str:
        command, *words = line.split()
        return getattr(self, f"do_{command.replace('-', '_')}")(*words) or ""

    def do_new(self) -> None:
        """`new`: another cluster."""
        self.__init__()

    def do_broker(self, name: str, *words: str) -> None:
        """`broker a cpu=90 n/1=5MB`: its newest report, which counts in the means, too."""
        usage, bundles = {"cpu": 0.0, "in": 0.0}, {}
        for key, _, value in (word.partition("=") for word in words):
            if key in usage:
                usage[key] = float(value)
            else:
                bundles[f"t/{key}"] = stats_of(value)
        self.brokers[name] = BrokerReport(
            broker_id=name,
            start_millis=1,
            cpu=ResourceUsage(usage["cpu"], 100.0),
            bandwidth_in=ResourceUsage(usage["in"], 100.0),
            bundles=bundles,
        )
        for bundle, stats in bundles.items():
            self.data[bundle] = self.data.get(bundle, BundleData()).with_sample(stats)

    def do_gone(self, name: str) -> None:
        """`gone a`: the broker is not registered any more."""
        del self.brokers[name]

    def do_rules(self, *words: str) -> None:
        """`rules strategy=OverloadShedder min_mebibytes_rate=0.1`."""
        given = dict(word.split("=") for word in words)
        known = SheddingRules()
        self.rules = SheddingRules(
            **{name: type(getattr(known, name))(text) for name, text in given.items()}
        )

    def do_keep(self, *bundles: str) -> None:
        """`keep n/1`: these stay where they are."""
        self.kept = {f"t/{each}" for each in bundles}

    def do_shed(self, rounds: str = "1") -> str:
        """`shed 3`: what the last of three rounds moves."""
        for _ in range(int(rounds)):
            found = self.shedder.choose(self.rules, Situation(self.brokers, self.data, self.kept))
        return (
            "\n".join(
                f"{each.bundle.removeprefix('t/')} leaves {each.broker_id}: {each.reason}"
                for each in found
            )
            or "nothing"
        )

    def do_split(self, *words: str) -> str:
        """`split max_topics=10 bundles=127`: what is too large, in a namespace of so many."""
        given = {name: int(text) for name, text in (word.split("=") for word in words)}
        count = given.pop("bundles", 4)
        found = large_bundles(
            SplitRules(**given),
            self.brokers,
            self.data,
            dict.fromkeys({name.rpartition("/")[0] for name in self.data}, count),
        )
        return (
            "\n".join(
                f"{each.bundle.removeprefix('t/')} of {each.broker_id}: {each.reason}"
                for each in found
            )
            or "nothing"
        )

    def do_policy(self, name: str, *words: str) -> None:
        """`policy p namespaces=t/iso.* primary=a.* secondary=b.* min=2`; lists with `|`."""
        given = dict(word.split("=") for word in words)
        self.policies[name] = {
            "namespaces": [given["namespaces"]],
            "primary": [given["primary"]],
            "secondary": [given["secondary"]] if "secondary" in given else [],
            "auto_failover_policy": {
                "policy_type": "min_available",
                "parameters": {"min_limit": given.get("min", "1"), "usage_threshold": "100"},
            },
        }

    def do_may(self, namespace: str) -> str:
        """`may t/iso`: who may take its bundles; brokers are their hosts here."""
        ids = [f"{name}:8080" for name in self.brokers]
        found = allowed_brokers(namespace, ids, read_policies(self.policies))
        return " ".join(each.removesuffix(":8080") for each in found) or "nobody"

    def do_group(self, *words: str) -> None:
        """`group a=1 b=0 domain:east=a,c`: namespaces of the group that brokers serve."""
        counts, domains = {}, {}
        for key, _, value in (word.partition("=") for word in words):
            if key.startswith("domain:"):
                domains[key] = value.split(",")
            else:
                counts[key] = int(value)
        self.apart = AntiAffinity(counts=counts, domains=domains)

    def do_even(self, flag: str) -> None:
        """`even no`: the number of bundles does not count."""
        self.placement_rules = PlacementRules(is_even=flag == "yes")

    def do_intend(self, bundle: str, broker: str) -> None:
        """`intend n/1 b`: somebody has chosen already."""
        self.placement.intend(f"t/{bundle}", broker)

    def do_place(self, bundle: str, *allowed: str) -> str:
        """`place n/1 a b`: who takes it, of these; of all without any."""
        return (
            self.placement.choose(
                f"t/{bundle}",
                self.brokers,
                allowed=allowed or None,
                rules=self.placement_rules,
                apart=self.apart,
            )
            or "nobody"
        )
