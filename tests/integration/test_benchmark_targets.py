"""What the benchmarks start and ask: a broker as a process, and a figure of its metrics page."""

from __future__ import annotations

from pathlib import Path

from benchmarks.targets import start_ours


def test_a_benchmark_reads_the_metrics_of_the_broker_it_started(tmp_path: Path) -> None:
    target = start_ours(tmp_path)
    try:
        assert target.metric("pulsar_py_storage_entry_log_read_bytes_total") == 0
        assert target.metric("pulsar_py_no_such_metric") is None
    finally:
        target.stop()
