"""Draws plots as inline SVG, without scripts (pure).

There are columns over time, and horizontal bars with labels. The page's style sets the colours, so
they suit its light and its dark theme. Browsers show the title of each mark under the pointer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 720
HEIGHT: Final = 200
LEFT: Final = 70
BOTTOM: Final = 28
TOP: Final = 12
BAR_HEIGHT: Final = 22
LABEL_WIDTH: Final = 220
VALUE_WIDTH: Final = 110
MAX_LABEL: Final = 32

Format = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Bar:
    """A value and its label."""

    label: str
    value: float


def columns(bars: Sequence[Bar], *, text_of: Format) -> str:
    """A plot with a column for each bar, in order, and labels at the first, middle and last one.

    Args:
        bars: At least one.
        text_of: Formats a value for the axis and the titles.
    """
    assert bars, "a plot has at least one bar"
    top = nice_ceiling(max(each.value for each in bars))
    inner_width, inner_height = WIDTH - LEFT - 10, HEIGHT - TOP - BOTTOM
    step = inner_width / len(bars)
    parts = [_grid(top, inner_height, text_of)]
    for index, each in enumerate(bars):
        height = inner_height * each.value / top
        parts.append(
            f'<rect class="mark" x="{LEFT + index * step + step * 0.08:.1f}"'
            f' y="{TOP + inner_height - height:.1f}" width="{step * 0.84:.1f}"'
            f' height="{height:.1f}"><title>{escape(each.label)}: {escape(text_of(each.value))}'
            "</title></rect>"
        )
    for index in sorted({0, len(bars) // 2, len(bars) - 1}):
        anchor = "start" if index == 0 else "end" if index == len(bars) - 1 else "middle"
        if len(bars) == 1:
            anchor = "middle"
        place = {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        parts.append(
            f'<text x="{LEFT + (index + place) * step:.1f}" y="{HEIGHT - 8}"'
            f' text-anchor="{anchor}">{escape(bars[index].label)}</text>'
        )
    return _svg(HEIGHT, parts)


def _grid(top: float, inner_height: float, text_of: Format) -> str:
    lines = []
    for share in (0.0, 0.5, 1.0):
        y = TOP + inner_height * (1 - share)
        lines.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f"{escape(text_of(top * share))}</text>"
        )
    return "".join(lines)


def rows(bars: Sequence[Bar], *, text_of: Format) -> str:
    """A plot with a horizontal bar for each value, its label left and its text right of it."""
    assert bars, "a plot has at least one bar"
    top = max(each.value for each in bars) or 1
    inner_width = WIDTH - LABEL_WIDTH - VALUE_WIDTH
    parts = []
    for index, each in enumerate(bars):
        y = index * BAR_HEIGHT
        width = max(1.0, inner_width * each.value / top)
        label = each.label if len(each.label) <= MAX_LABEL else f"{each.label[: MAX_LABEL - 1]}…"
        parts.append(
            f'<text x="{LABEL_WIDTH - 8}" y="{y + 15}" text-anchor="end">{escape(label)}</text>'
            f'<rect class="mark" x="{LABEL_WIDTH}" y="{y + 3}" width="{width:.1f}"'
            f' height="{BAR_HEIGHT - 6}"><title>{escape(each.label)}</title></rect>'
            f'<text x="{LABEL_WIDTH + width + 6:.1f}" y="{y + 15}">'
            f"{escape(text_of(each.value))}</text>"
        )
    return _svg(len(bars) * BAR_HEIGHT, parts)


def _svg(height: int, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" xmlns="http://www.w3.org/2000/svg">'
        f"{''.join(parts)}</svg>"
    )


def nice_ceiling(value: float) -> float:
    """The smallest 1, 2 or 5 times a power of ten that is not below the value; 1 for 0."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * 0.999999)


def count_text(value: float) -> str:
    """A number as `950`, `1.2k`, `3.4M`."""
    return _scaled(value, 1000, ("", "k", "M", "G", "T"))


def bytes_text(value: float) -> str:
    """A size as `950 B`, `1.2 KiB`, `3.4 MiB`."""
    return _scaled(value, 1024, (" B", " KiB", " MiB", " GiB", " TiB"))


def _scaled(value: float, factor: int, units: Sequence[str]) -> str:
    for unit in units[:-1]:
        if abs(value) < factor:
            return f"{value:.3g}{unit}"
        value /= factor
    return f"{value:.3g}{units[-1]}"
