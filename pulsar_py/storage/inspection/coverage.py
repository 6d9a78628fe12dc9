"""Computes which entries of a ledger are missing from the runs that were found (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pulsar_py.storage.shared.location import Location

EntryRange = tuple[int, int]
"""First and last entry id, both included."""


def missing_ranges(present: Iterable[EntryRange], first: int, last: int) -> list[EntryRange]:
    """The parts of `first` to `last` that no range covers, ascending."""
    missing = []
    for begin, end in sorted(present):
        if begin > last:
            break
        if begin > first:
            missing.append((first, begin - 1))
        first = max(first, end + 1)
    if first <= last:
        missing.append((first, last))
    return missing


def useful_runs(runs: Mapping[int, Location]) -> dict[int, Location]:
    """The runs but for those within an earlier run, which a search finds in their place."""
    useful = {}
    end = -1
    for first in sorted(runs):
        last = first + runs[first].count - 1
        if last > end:
            useful[first] = runs[first]
            end = last
    return useful


def ranges_of(runs: Mapping[int, Location]) -> list[EntryRange]:
    """The ranges of entries in `runs`, ascending."""
    return [(first, first + location.count - 1) for first, location in runs.items()]


def ranges_text(ranges: Iterable[EntryRange], limit_count: int = 8) -> str:
    """The ranges as text for messages, such as "3, 5-9"; at most `limit_count` of them."""
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in ranges]
    more = len(texts) - limit_count
    return ", ".join(texts[:limit_count]) + (f" and {more} ranges more" if more > 0 else "")
