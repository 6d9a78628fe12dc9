"""Prints figures, one line each, beside the limits that some of them have."""

from __future__ import annotations

from collections.abc import Mapping


def print_limited(title: str, figures: Mapping[str, float], limits: Mapping[str, float]) -> None:
    """A line with the title, and one a figure."""
    print(f"\n{title:<56}{'limit':>8}")
    for name, value in figures.items():
        limit = f"{limits[name]:8.0f}" if name in limits else ""
        print(f"{name:<44}{value:12,.2f}{limit}")
