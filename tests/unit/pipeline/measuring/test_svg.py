"""Plots."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from pulsar_py.pipeline.measuring.svg import (
    Bar,
    bytes_text,
    columns,
    count_text,
    nice_ceiling,
    rows,
)

SVG = "{http://www.w3.org/2000/svg}"
BARS = [Bar("<a>", 1.0), Bar("b", 4.0), Bar("c" * 50, 0.0)]


def marks(plot: str) -> list[ET.Element]:
    return ET.fromstring(plot).findall(f"{SVG}rect")


def test_columns_are_as_high_as_their_values() -> None:
    plot = columns(BARS, text_of=count_text)
    heights = [float(each.attrib["height"]) for each in marks(plot)]
    assert heights[1] == pytest.approx(4 * heights[0], abs=0.2)
    assert heights[2] == 0
    assert ET.fromstring(plot).find(f"{SVG}rect/{SVG}title").text == "<a>: 1"  # type: ignore[union-attr]


def test_rows_are_as_long_as_their_values() -> None:
    plot = rows(BARS, text_of=count_text)
    widths = [float(each.attrib["width"]) for each in marks(plot)]
    assert widths[1] == pytest.approx(4 * widths[0], abs=0.2)
    assert "ccc…" in plot


def test_one_value_and_nothing_at_all() -> None:
    assert len(marks(columns([Bar("a", 0.0)], text_of=count_text))) == 1
    assert len(marks(rows([Bar("a", 0.0)], text_of=count_text))) == 1


@pytest.mark.parametrize(
    ("value", "ceiling"), [(0, 1), (1, 1), (1.1, 2), (3, 5), (7, 10), (1200, 2000), (0.03, 0.05)]
)
def test_ends_of_axes(value: float, ceiling: float) -> None:
    assert nice_ceiling(value) == pytest.approx(ceiling)


def test_texts_of_values() -> None:
    assert [count_text(each) for each in (0, 950, 1234, 5_600_000)] == ["0", "950", "1.23k", "5.6M"]
    assert [bytes_text(each) for each in (0, 2048, 3 << 40)] == ["0 B", "2 KiB", "3 TiB"]
