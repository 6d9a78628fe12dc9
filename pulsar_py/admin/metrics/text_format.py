"""Writes Prometheus' text format: labels, and all lines of one metric (pure).

    # HELP pulsar_rate_in Messages published a second.
    # TYPE pulsar_rate_in gauge
    pulsar_rate_in{cluster="c",namespace="t/n",topic="persistent://t/n/a"} 1.5

All lines of a metric stand together. For many things they are made a chunk at a time, from label
texts and values that lie beside each other. Most values of most topics are 0: such a chunk is
joined, without formatting a number.

Source: the text format 0.0.4 of Prometheus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pulsar_py.admin.metrics.help_texts import help_text

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

LINES_A_CHUNK: Final = 1_000
"""Lines made in one turn of the loop; a millisecond where all have a value of their own."""


def labels_text(labels: Mapping[str, str]) -> str:
    """Labels with their values, without braces."""
    return ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())


def escaped(value: str) -> str:
    """A label's value as it stands between quotes."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def type_line(name: str, kind: str) -> str:
    """What stands before a metric's first line; `kind` is gauge, counter, histogram or summary."""
    return f"# HELP {name} {help_text(name)}\n# TYPE {name} {kind}\n"


def line(name: str, labels: str, value: float) -> str:
    """One line; `labels` in braces."""
    return f"{name}{labels} {number(value)}\n"


def number(value: float) -> str:
    """A value as Prometheus reads it; whole numbers have no point."""
    return str(int(value)) if value == int(value) else repr(value)


def chunks(name: str, labels: Sequence[str], values: Sequence[float]) -> Iterator[str]:
    """The lines of one metric for many things, a chunk at a time; `labels` in braces."""
    assert len(labels) == len(values), f"{name}: {len(values)} values for {len(labels)} things"
    for start in range(0, len(labels), LINES_A_CHUNK):
        part = values[start : start + LINES_A_CHUNK]
        these = labels[start : start + LINES_A_CHUNK]
        if any(part):
            yield "".join([f"{name}{a} {number(b)}\n" for a, b in zip(these, part, strict=True)])
        else:
            yield name + (" 0\n" + name).join(these) + " 0\n"
