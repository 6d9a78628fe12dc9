from __future__ import annotations

from pulsar_py.storage.entry_logs.read_cache import ReadCache


def run(size: int = 1000, count: int = 10) -> list[bytes]:
    return [bytes(size)] * count


def put(cache: ReadCache, first: int, entries: list[bytes], *, ledger_id: int = 1) -> None:
    """A stretch of one run."""
    cache.put(ledger_id, [(first, entries)], sum(map(len, entries)))


def test_a_run_is_found_by_any_entry_in_it() -> None:
    cache = ReadCache(100_000)
    entries = run()
    put(cache, 10, entries)

    assert cache.find(1, 10) == (entries, 0)
    assert cache.find(1, 19) == (entries, 9)
    assert cache.find(1, 9) is None
    assert cache.find(1, 20) is None
    assert cache.find(2, 10) is None


def test_the_least_recently_used_run_goes_first() -> None:
    cache = ReadCache(35_000)
    for first in (0, 10, 20):
        put(cache, first, run())
    cache.find(1, 0)
    put(cache, 30, run())

    assert [cache.find(1, first) is not None for first in (0, 10, 20, 30)] == [
        True,
        False,
        True,
        True,
    ]
    assert cache.size_bytes <= 35_000


def test_tiny_entries_count_what_they_hold() -> None:
    cache = ReadCache(10_000)
    put(cache, 0, [b""] * 100)

    assert cache.size_bytes > 900


def test_a_stretch_goes_as_a_whole() -> None:
    cache = ReadCache(45_000)
    cache.put(1, [(0, run()), (10, run())], 20_000)
    cache.put(1, [(20, run()), (30, run())], 20_000)
    cache.find(1, 0)
    put(cache, 40, run())

    assert [cache.find(1, first) is not None for first in range(0, 50, 10)] == [
        True,
        True,
        False,
        False,
        True,
    ]


def test_of_a_stretch_only_what_is_new_is_taken() -> None:
    cache = ReadCache(100_000)
    put(cache, 10, run())
    cache.put(1, [(0, run()), (10, run())], 20_000)
    cache.forget_ledger(1)
    assert cache.size_bytes == 0
    assert cache.end_of(1, 10) == 10


def test_what_is_too_big_is_not_kept_and_nothing_twice() -> None:
    cache = ReadCache(5_000)
    put(cache, 0, run())
    assert cache.find(1, 0) is None
    put(cache, 0, run(10))
    size = cache.size_bytes
    put(cache, 0, run(10))
    assert cache.size_bytes == size


def test_a_forgotten_ledger_leaves_nothing() -> None:
    cache = ReadCache(100_000)
    for first in range(0, 50, 10):
        put(cache, first, run())
    put(cache, 0, run(), ledger_id=2)
    other = cache.size_bytes // 6

    cache.forget_ledger(1)
    cache.forget_ledger(1)

    assert cache.find(1, 0) is None
    assert cache.size_bytes == other


def test_the_first_who_finds_a_marked_run_is_reported() -> None:
    cache, reported = ReadCache(100_000), []
    cache.on_mark = lambda *news: reported.append(news)
    put(cache, 0, run())
    cache.mark(1, 0, 40)
    cache.mark(1, 99, 40)
    for size_bytes in (7, 9):
        cache.count_unread(1, 0, size_bytes)
        cache.count_unread(1, 99, size_bytes)

    assert (cache.unread_bytes, reported) == (9, [])
    cache.find(1, 5)
    cache.find(1, 6)
    assert (cache.unread_bytes, reported) == (0, [(1, 40)])
    put(cache, 99, run())
    cache.find(1, 99)
    assert reported == [(1, 40)]  # What was not here has no mark when it comes.


def test_where_what_is_here_ends() -> None:
    cache = ReadCache(100_000)
    for first in (0, 10, 30):
        put(cache, first, run())

    ends = {entry_id: cache.end_of(1, entry_id) for entry_id in (0, 9, 10, 19, 20, 30, 40)}

    assert ends == {0: 20, 9: 20, 10: 20, 19: 20, 20: 20, 30: 40, 40: 40}
    assert cache.end_of(2, 5) == 5


def test_a_mark_goes_with_its_run() -> None:
    cache = ReadCache(11_500)
    put(cache, 0, run())
    cache.mark(1, 0, 40)
    cache.count_unread(1, 0, 7)
    put(cache, 10, run())

    assert cache.unread_bytes == 0
    assert cache.find(1, 0) is None
