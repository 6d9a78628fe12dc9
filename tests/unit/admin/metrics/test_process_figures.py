"""What the system knows of this process."""

from __future__ import annotations

import os

from pulsar_py.admin.metrics.process_figures import process_figures
from pulsar_py.common.loops.clock import SystemClock


def test_an_opened_file_is_a_descriptor_more() -> None:
    before = process_figures()
    descriptors = [os.open(os.devnull, os.O_RDONLY) for _ in range(7)]
    after = process_figures()
    for each in descriptors:
        os.close(each)
    assert before.open_descriptors_count is not None
    assert after.open_descriptors_count == before.open_descriptors_count + 7
    assert after.cpu_seconds >= before.cpu_seconds


def test_memory_and_start_are_plausible() -> None:
    figures = process_figures()
    assert figures.resident_bytes is not None
    assert figures.virtual_bytes is not None
    assert figures.started_seconds is not None
    assert 10_000_000 < figures.resident_bytes <= figures.virtual_bytes
    now = SystemClock().wall_time_millis() / 1000
    assert now - 7 * 86_400 < figures.started_seconds <= now + 1
