"""StorageSettings: the declarations, against what Apache Pulsar 4.2.4 has."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.settings.storage import StorageSettings


def test_defaults_are_those_of_a_standalone() -> None:
    settings = StorageSettings()
    assert settings.managedLedgerMaxEntriesPerLedger == 50_000
    assert settings.managedLedgerMaxSizePerLedgerMbytes == 2048
    assert settings.managedLedgerCursorMaxEntriesPerLedger == 50_000


def test_shares_lie_between_none_and_all() -> None:
    with pytest.raises(ConfigurationError, match="must be at most 1"):
        StorageSettings(managedLedgerCacheEvictionWatermark=1.1)


def test_a_journal_that_would_never_end_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="journalMaxSizeMB=20000000: must be at most"):
        StorageSettings(journalMaxSizeMB=20_000_000)
