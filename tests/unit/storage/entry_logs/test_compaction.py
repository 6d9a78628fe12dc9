from __future__ import annotations

from pulsar_py.storage.entry_logs.compaction import choose_logs, choose_merge
from pulsar_py.storage.shared.manifest import LogState


def test_logs_below_the_threshold_are_chosen_emptiest_first() -> None:
    logs = {
        1: LogState(100, 40),
        2: LogState(100, 10),
        3: LogState(100, 50),
        4: LogState(100, 1),
        5: LogState(0, 0),
    }

    assert choose_logs(logs, threshold=0.5, busy_log_ids={4}) == [2, 1]
    assert choose_logs(logs, threshold=0.01) == []


def test_four_neighbours_of_similar_size_are_merged() -> None:
    assert choose_merge([1, 1, 1]) is None
    assert choose_merge([1, 1, 1, 1]) == range(4)
    assert choose_merge([1, 1, 1, 1, 1000]) == range(4)
    assert choose_merge([1, 100, 100, 100, 100]) == range(1, 5)


def test_the_number_of_tables_stays_logarithmic() -> None:
    sizes: list[int] = []
    written = 0
    for _ in range(5000):
        sizes.insert(0, 1)
        while (chosen := choose_merge(sizes)) is not None:
            merged = sum(sizes[chosen.start : chosen.stop])
            written += merged
            sizes[chosen.start : chosen.stop] = [merged]
        assert len(sizes) <= 30

    assert sum(sizes) == 5000
    assert written < 5000 * 20
