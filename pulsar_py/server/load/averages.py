"""`BundleData`: the mean load of a bundle over its last reports, and its stored form (pure).

The leader of a cluster keeps two means for each bundle, of about ten and of about a thousand
reports, and stores them for the next leader. A bundle that nobody has reported yet counts as a
moderate load, or as what its resource quota says.

Source: BundleData, TimeAverageMessageData, TimeAverageBrokerData, ModularLoadManagerImpl in Pulsar.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from pulsar_py.common.foreign_json import parse_json
from pulsar_py.server.load.broker_report import BundleStats

SHORT_SAMPLES: Final = 10
LONG_SAMPLES: Final = 1000
DEFAULT_RATE: Final = 50.0
"""Messages a second, in and out each, of a bundle that nobody has reported."""
DEFAULT_THROUGHPUT: Final = 50_000.0
"""Its bytes a second, in and out each."""


class TimeAverage(Struct, frozen=True, kw_only=True):
    """The mean of at most `max_samples` reports; older ones lose weight with each new one."""

    max_samples: int
    samples_count: int = 0
    bytes_in_rate: float = DEFAULT_THROUGHPUT
    bytes_out_rate: float = DEFAULT_THROUGHPUT
    messages_in_rate: float = DEFAULT_RATE
    messages_out_rate: float = DEFAULT_RATE

    @property
    def messages_rate(self) -> float:
        """Messages in and out a second."""
        return self.messages_in_rate + self.messages_out_rate

    @property
    def bytes_rate(self) -> float:
        """Bytes in and out a second."""
        return self.bytes_in_rate + self.bytes_out_rate

    def with_sample(self, stats: BundleStats) -> TimeAverage:
        """The mean with one more report; the first one replaces what was assumed."""
        count = min(self.samples_count + 1, self.max_samples)

        def mean(old: float, new: float) -> float:
            return ((count - 1) * old + new) / count

        return TimeAverage(
            max_samples=self.max_samples,
            samples_count=count,
            bytes_in_rate=mean(self.bytes_in_rate, stats.bytes_in_rate),
            bytes_out_rate=mean(self.bytes_out_rate, stats.bytes_out_rate),
            messages_in_rate=mean(self.messages_in_rate, stats.messages_in_rate),
            messages_out_rate=mean(self.messages_out_rate, stats.messages_out_rate),
        )

    def to_json(self) -> dict[str, float]:
        """The stored form."""
        return {
            "maxSamples": self.max_samples,
            "numSamples": self.samples_count,
            "msgThroughputIn": self.bytes_in_rate,
            "msgThroughputOut": self.bytes_out_rate,
            "msgRateIn": self.messages_in_rate,
            "msgRateOut": self.messages_out_rate,
        }


class BundleData(Struct, frozen=True, kw_only=True):
    """The mean load of one bundle."""

    short: TimeAverage = TimeAverage(max_samples=SHORT_SAMPLES)
    long: TimeAverage = TimeAverage(max_samples=LONG_SAMPLES)
    topics_count: int = 0

    def with_sample(self, stats: BundleStats) -> BundleData:
        """The means with one more report."""
        return BundleData(
            short=self.short.with_sample(stats),
            long=self.long.with_sample(stats),
            topics_count=stats.topics_count,
        )

    def encode(self) -> bytes:
        """The stored form."""
        document = {
            "shortTermData": self.short.to_json(),
            "longTermData": self.long.to_json(),
            "topics": self.topics_count,
        }
        return json.dumps(document, separators=(",", ":")).encode()


UNREPORTED: Final = BundleData()


def decode_bundle_data(value: bytes) -> BundleData | None:
    """The means that were stored; None if they can't be read."""
    try:
        document = parse_json(value)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    return BundleData(
        short=_decode_average(document.get("shortTermData"), SHORT_SAMPLES),
        long=_decode_average(document.get("longTermData"), LONG_SAMPLES),
        topics_count=int(_number(document.get("topics"), 0.0)),
    )


def data_of_quota(value: bytes) -> BundleData | None:
    """The means that a stored resource quota stands for; None if it can't be read.

    A quota counts like a long history, so that reports change it slowly.
    """
    try:
        document = parse_json(value)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None

    def average(samples_count: int) -> TimeAverage:
        return TimeAverage(
            max_samples=samples_count,
            samples_count=samples_count,
            bytes_in_rate=_number(document.get("bandwidthIn"), 0.0),
            bytes_out_rate=_number(document.get("bandwidthOut"), 0.0),
            messages_in_rate=_number(document.get("msgRateIn"), 0.0),
            messages_out_rate=_number(document.get("msgRateOut"), 0.0),
        )

    return BundleData(short=average(SHORT_SAMPLES), long=average(LONG_SAMPLES))


def encode_broker_average(bundles: Iterable[BundleData]) -> bytes:
    """The stored form of a broker's mean load: the sums over its bundles."""
    known = list(bundles)
    document: dict[str, float] = {}
    for prefix, averages in (
        ("shortTerm", [each.short for each in known]),
        ("longTerm", [each.long for each in known]),
    ):
        document[f"{prefix}MsgThroughputIn"] = sum(each.bytes_in_rate for each in averages)
        document[f"{prefix}MsgThroughputOut"] = sum(each.bytes_out_rate for each in averages)
        document[f"{prefix}MsgRateIn"] = sum(each.messages_in_rate for each in averages)
        document[f"{prefix}MsgRateOut"] = sum(each.messages_out_rate for each in averages)
    return json.dumps(document, separators=(",", ":")).encode()


def _decode_average(value: object, max_samples: int) -> TimeAverage:
    found: dict[str, Any] = value if isinstance(value, dict) else {}  # Any: JSON
    default = TimeAverage(max_samples=max_samples)
    limit = max(int(_number(found.get("maxSamples"), max_samples)), 1)
    return TimeAverage(
        max_samples=limit,
        samples_count=min(max(int(_number(found.get("numSamples"), 0.0)), 0), limit),
        bytes_in_rate=_number(found.get("msgThroughputIn"), default.bytes_in_rate),
        bytes_out_rate=_number(found.get("msgThroughputOut"), default.bytes_out_rate),
        messages_in_rate=_number(found.get("msgRateIn"), default.messages_in_rate),
        messages_out_rate=_number(found.get("msgRateOut"), default.messages_out_rate),
    )


def _number(value: object, default: float) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else default  # type: ignore[arg-type]  # it is one
