from __future__ import annotations

from pulsar_py.bookkeeper.cluster.settings import BookKeeperSettings


def test_an_entry_of_the_default_size_limit_of_pulsar_fits_a_frame() -> None:
    limits = BookKeeperSettings().limits
    assert limits.max_entry_bytes > 5 * 1024 * 1024
    assert BookKeeperSettings(max_entry_bytes=7).limits.max_entry_bytes == 7


def test_one_slow_bookie_does_not_use_up_what_all_may() -> None:
    settings = BookKeeperSettings()
    assert settings.connection.max_waiting_bytes == 64 * 1024 * 1024
    assert settings.connection.max_waiting_bytes < settings.max_pinned_bytes


def test_a_request_ends_early_enough_for_another_bookie_to_be_asked() -> None:
    settings = BookKeeperSettings()
    request_seconds = settings.connection.request_timeout_seconds
    assert 2 * request_seconds < settings.answer_timeout_seconds
