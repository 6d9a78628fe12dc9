from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.storage.shared.settings import BookieSettings


def test_the_defaults_fit_together() -> None:
    BookieSettings().check()


def test_contradictions_are_refused_with_both_values() -> None:
    with pytest.raises(ConfigurationError, match=r"limit of 10 bytes: .* of 67108864 bytes"):
        BookieSettings(append_limit_bytes=10).check()
    with pytest.raises(
        ConfigurationError, match=r"runs of 300 bytes: expected at most .* 200 bytes"
    ):
        BookieSettings(run_bytes=300, entry_log_bytes=200).check()
