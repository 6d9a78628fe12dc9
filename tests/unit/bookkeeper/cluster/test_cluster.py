from __future__ import annotations

from dataclasses import replace

import pytest

from pulsar_py.bookkeeper.cluster.cluster import LedgerInUse, PinnedBytes
from pulsar_py.bookkeeper.metadata.ledger_metadata import LedgerMetadata
from pulsar_py.bookkeeper.metadata.ledger_records import RecordedLedger
from pulsar_py.bookkeeper.protocol.digest import master_key
from pulsar_py.common.errors import StorageError, StoreBusyError
from pulsar_py.ledgers.store import LedgerOptions

SECRET = LedgerMetadata.new(LedgerOptions(password=b"secret"), ["a:1"])


def test_bytes_are_pinned_up_to_the_limit() -> None:
    pinned = PinnedBytes(100)
    pinned.take(60)
    pinned.take(40)
    with pytest.raises(StoreBusyError, match="100 of 100 bytes"):
        pinned.take(1)
    pinned.give_back(60)
    pinned.take(60)
    assert pinned.now_bytes == 100


def test_the_password_has_to_be_the_ledgers() -> None:
    ledger = LedgerInUse(1, RecordedLedger(SECRET, 0), b"secret")
    assert ledger.master_key == master_key(b"secret")
    with pytest.raises(StorageError, match="ledger 1: the password"):
        LedgerInUse(1, RecordedLedger(SECRET, 0), b"")
    LedgerInUse(1, RecordedLedger(replace(SECRET, password=None), 0), b"any")


def test_only_a_newer_version_is_learnt() -> None:
    ledger = LedgerInUse(1, RecordedLedger(SECRET, 5), b"secret")
    closed = SECRET.closed(3, 30)
    ledger.learn(RecordedLedger(closed, 5))
    assert not ledger.recorded.metadata.is_closed
    ledger.learn(RecordedLedger(closed, 6))
    assert ledger.recorded.metadata.is_closed
