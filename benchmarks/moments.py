"""The slowest messages of a load, and what was under way while they were.

What may hold up messages is noted as spans, by the broker (`traced_broker`) and by the load itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import median

from benchmarks.traced_broker import Span

SLOWEST_SHARE = 0.01
"""Of all messages: those of which it is shown what was under way with them."""
MOMENTS = 8
NAMED = 6
"""The most things that are named for a moment."""
MOST_SHARES = 12
MOST_LINES = 25


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of durations, in milliseconds."""

    p50: float
    p99: float
    p999: float
    worst: float

    @classmethod
    def of(cls, millis: Sequence[float]) -> Percentiles:
        """Those of unsorted durations."""
        found = sorted(millis)
        middle, high, higher = (found[int(len(found) * share)] for share in (0.5, 0.99, 0.999))
        return cls(middle, high, higher, found[-1])

    @classmethod
    def medians(cls, several: Sequence[Percentiles]) -> Percentiles:
        """The median of each of the four."""
        return cls(
            *(
                median(getattr(each, name) for each in several)
                for name in ("p50", "p99", "p999", "worst")
            )
        )

    def __str__(self) -> str:
        return (
            f"p50 {self.p50:.2f} p99 {self.p99:.2f} p99.9 {self.p999:.2f} worst {self.worst:.2f} ms"
        )


@dataclass(frozen=True, slots=True)
class Messages:
    """When the messages of a load were sent and received; only the slowest are kept one by one."""

    count: int
    found: Percentiles
    first_sent: int
    last_received: int
    slowest: list[tuple[int, int]]
    """When each of the slowest was sent and received; never empty."""

    @classmethod
    def of(cls, times: Sequence[tuple[int, int]]) -> Messages:
        """Of all messages, in the order in which they were sent."""
        slowest = sorted(times, key=lambda each: each[0] - each[1])
        return cls(
            len(times),
            Percentiles.of([(received - sent) / 1e6 for sent, received in times]),
            times[0][0],
            max(received for _, received in times),
            slowest[: max(int(len(times) * SLOWEST_SHARE), 1)],
        )


def worst_moments(times: Sequence[tuple[int, int]], count: int) -> Iterator[tuple[int, int]]:
    """The slowest messages, none of which was under way together with a slower one of them."""
    chosen: list[tuple[int, int]] = []
    for sent, received in sorted(times, key=lambda each: each[0] - each[1]):
        if all(received < start or sent > end for start, end in chosen):
            chosen.append((sent, received))
            yield sent, received
            if len(chosen) == count:
                return


def under_way(spans: Sequence[Span], start: int, end: int) -> list[tuple[str, float]]:
    """What was under way between two moments, and for how many milliseconds of it, by length."""
    covered: dict[str, tuple[int, int]] = {}  # the end of what was counted, and how much that is
    for name, begun, ended in sorted(spans, key=itemgetter(1)):
        reached, nanos = covered.get(name, (start, 0))
        if ended > reached and begun < end:
            upto = min(ended, end)
            covered[name] = upto, nanos + max(upto - max(begun, reached), 0)
    found = [(name, nanos / 1e6) for name, (_, nanos) in covered.items() if nanos]
    return sorted(found, key=itemgetter(1), reverse=True)


def joined_times(times: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """When any of these messages was under way: times that don't overlap, in order."""
    joined: list[tuple[int, int]] = []
    for sent, received in sorted(times):
        if joined and sent <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], received)
        else:
            joined.append((sent, received))
    return joined


def shares(spans: Sequence[Span], times: Sequence[tuple[int, int]]) -> dict[str, float]:
    """Which part of these times each thing was under way."""
    nanos = sum(end - start for start, end in times)
    found: dict[str, float] = {}
    for start, end in times:
        near = [span for span in spans if span[1] < end and span[2] > start]
        for name, millis in under_way(near, start, end):
            found[name] = found.get(name, 0.0) + millis * 1e6 / nanos
    return found


def print_moments(title: str, messages: Messages, spans: Sequence[Span]) -> None:
    """Print what the worst moments of a load were."""
    print(f"{title}: the worst moments, and what was under way in them, in ms:")
    for sent, received in worst_moments(messages.slowest, MOMENTS):
        named = under_way(spans, sent, received)[:NAMED]
        what = ", ".join(f"{name} {took:.1f}" for name, took in named)
        at = (sent - messages.first_sent) / 1e9
        print(f"    {(received - sent) / 1e6:7.2f} at {at:6.2f} s: {what or 'nothing noted'}")
    _print_shares(messages, spans)
    _print_all(messages, spans)


def _print_shares(messages: Messages, spans: Sequence[Span]) -> None:
    """What was under way with the slowest messages, beside what was at all."""
    slowest = joined_times(messages.slowest)
    millis = sum(end - start for start, end in slowest) / 1e6
    whole = [(messages.first_sent, messages.last_received)]
    among, in_all = shares(spans, slowest), shares(spans, whole)
    print(
        f"    the slowest {SLOWEST_SHARE:.0%} were under way in {len(slowest)} stretches, "
        f"{millis:,.0f} ms in all; which part of these, and of all the time, each thing was:"
    )
    for name in sorted(among, key=among.__getitem__, reverse=True)[:MOST_SHARES]:
        print(f"    {among[name]:6.0%} {in_all[name]:6.0%}  {name}")


def _print_all(messages: Messages, spans: Sequence[Span]) -> None:
    """How often each thing was under way at all, and how long."""
    print("    all that was noted meanwhile: how often, how long on average and at most, in ms:")
    names: dict[str, list[float]] = {}
    for name, start, end in spans:
        if start < messages.last_received and end > messages.first_sent:
            names.setdefault(name, []).append((end - start) / 1e6)
    longest = sorted(names.items(), key=lambda each: -max(each[1]))
    for name, took in longest[:MOST_LINES]:
        print(f"    {len(took):6} {sum(took) / len(took):8.2f} {max(took):8.2f}  {name}")
