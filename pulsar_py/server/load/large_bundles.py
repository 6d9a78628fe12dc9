"""Chooses the bundles that are too large and have to be split (pure).

A bundle is too large by its topics, its producers and consumers, or its mean rates of messages or
bytes over many reports. One with a single topic can't be split. A namespace gets at most so many
bundles, and a round splits at most so many.

Source: BundleSplitterTask in Pulsar's broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from pulsar_py.server.load.averages import BundleData
from pulsar_py.server.load.broker_report import BrokerReport, BundleStats

_MEBIBYTE = 1024 * 1024


class SplitRules(Struct, frozen=True, kw_only=True):
    """The limits above which a bundle is split."""

    max_topics: int = 1000
    max_sessions: int = 1000
    """0 or less: any number."""
    max_messages_rate: float = 30_000.0
    max_mebibytes_rate: float = 100.0
    max_bundles: int = 128
    """Of a namespace."""


class LargeBundle(Struct, frozen=True):
    """A bundle to split."""

    broker_id: str
    bundle: str
    """`tenant/namespace/range`."""
    reason: str
    """In words, with figures."""


def large_bundles(
    rules: SplitRules,
    brokers: Mapping[str, BrokerReport],
    data: Mapping[str, BundleData],
    bundles_counts: Mapping[str, int],
) -> list[LargeBundle]:
    """The bundles to split now. `bundles_counts` is by namespace; one that lacks is left alone."""
    found: list[LargeBundle] = []
    more: Counter[str] = Counter()
    for broker_id, report in brokers.items():
        for bundle, stats in report.bundles.items():
            namespace = bundle.rpartition("/")[0]
            reason = _reason(rules, stats, data.get(bundle))
            if not reason or namespace not in bundles_counts:
                continue
            if bundles_counts[namespace] + more[namespace] >= rules.max_bundles:
                continue
            more[namespace] += 1
            found.append(LargeBundle(broker_id, bundle, reason))
    return found


def _reason(rules: SplitRules, stats: BundleStats, data: BundleData | None) -> str:
    """Why a bundle is too large; empty if it is not."""
    if stats.topics_count < 2:  # noqa: PLR2004 - one on either side
        return ""
    messages_rate = 0.0 if data is None else data.long.messages_rate
    mebibytes_rate = 0.0 if data is None else data.long.bytes_rate / _MEBIBYTE
    sessions_count = stats.producers_count + stats.consumers_count
    max_sessions = rules.max_sessions if rules.max_sessions > 0 else sessions_count
    for value, limit, unit in (
        (stats.topics_count, rules.max_topics, "topics"),
        (sessions_count, max_sessions, "producers and consumers"),
        (messages_rate, rules.max_messages_rate, "messages a second"),
        (mebibytes_rate, rules.max_mebibytes_rate, "MiB a second"),
    ):
        if value > limit:
            return f"{value:.0f} {unit} are more than {limit:.0f}"
    return ""
