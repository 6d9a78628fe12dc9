"""Prints figures beside the limits that some of them have; a run that misses one fails."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence


def beyond_limits(figures: Mapping[str, float], limits: Mapping[str, float]) -> list[str]:
    """A text for each figure that is above its limit; a run may measure a part of them."""
    return [
        f"{name} is {figures[name]:,.2f}, at most {limit:g} is allowed"
        for name, limit in limits.items()
        if name in figures and not figures[name] <= limit
    ]


def print_limited(
    title: str, figures: Mapping[str, float], limits: Mapping[str, float]
) -> list[str]:
    """A line with the title, and one a figure; returns what is beyond its limit."""
    print(f"\n{title:<56}{'limit':>8}")
    for name, value in figures.items():
        limit = f"{limits[name]:8g}" if name in limits else ""
        print(f"{name:<44}{value:12,.2f}{limit}")
    return beyond_limits(figures, limits)


def exit_with(texts: Sequence[str]) -> None:
    """End the program, with status 1 if anything is beyond its limit."""
    for text in texts:
        print(f"beyond the limit: {text}")
    sys.exit(1 if texts else 0)
