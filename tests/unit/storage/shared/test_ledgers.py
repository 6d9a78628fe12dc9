from __future__ import annotations

import pytest

from pulsar_py.common.errors import LedgerFencedError, LedgerNotFoundError, StorageError
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.storage.shared.ledger_record import TOMBSTONE, LedgerRecord
from pulsar_py.storage.shared.ledgers import (
    Ledger,
    Ledgers,
    check_exists,
    check_password,
    entries_cost,
)


def busy() -> Ledger:
    """Two entries confirmed, one in the journal's hands, two pending."""
    ledger = Ledger(1, LedgerRecord())
    ledger.last_add_confirmed, ledger.last_add_taken, ledger.last_add_pushed = 1, 2, 4
    ledger.pending = [b"3", b"44"]
    ledger.check()
    return ledger


def test_giving_up_forgets_what_waits_and_leaves_what_is_taken() -> None:
    ledger = busy()

    forgotten = ledger.give_up(LedgerFencedError("x"))

    ledger.check()
    assert forgotten == [b"3", b"44"]
    assert entries_cost(forgotten) == 3 + 2 * 64
    assert (ledger.last_add_taken, ledger.last_add_pushed) == (2, 2)
    assert not ledger.is_settled
    assert not ledger.give_up(StorageError("later"))
    assert isinstance(ledger.refusal, LedgerFencedError)


def test_taking_back_returns_to_what_is_confirmed() -> None:
    ledger = busy()
    ledger.give_up(StorageError("x"))

    ledger.take_back()

    ledger.check()
    assert ledger.is_settled
    assert ledger.last_add_pushed == 1


def test_who_waits_is_told_once_when_settled() -> None:
    ledger = busy()
    told: list[int] = []
    ledger.settled_callbacks.append(lambda: told.append(1))
    ledger.notify_settled()
    assert not told

    ledger.give_up(StorageError("x"))
    ledger.confirm(2, 10)
    ledger.notify_settled()
    ledger.notify_settled()

    assert told == [1]
    assert ledger.length_bytes == 10


def test_there_is_one_living_ledger_an_id_and_none_once_let_go() -> None:
    ledgers = Ledgers()
    ledger = ledgers.adopt(5, LedgerRecord(last_entry_id=3))

    assert ledgers.adopt(5, LedgerRecord()) is ledger
    assert ledgers.find(5) is ledger
    assert ledgers.living() == [ledger]
    del ledger
    assert ledgers.find(5) is None


def test_passwords_and_deletion_are_checked() -> None:
    ledger = Ledger(5, LedgerRecord.created(LedgerOptions(password=b"p")))
    check_password(ledger, b"p")
    check_exists(ledger)
    with pytest.raises(StorageError, match="password"):
        check_password(ledger, b"q")
    ledger.record = TOMBSTONE
    with pytest.raises(LedgerNotFoundError):
        check_exists(ledger)


def test_what_the_journal_failed_to_write_is_taken_back_after_giving_up() -> None:
    ledger = busy()
    with pytest.raises(AssertionError, match="follow lost ones"):
        ledger.take_back()

    ledger.give_up(StorageError("x"))
    ledger.take_back()

    ledger.check()
    assert ledger.is_settled


def test_nothing_is_confirmed_twice_or_before_the_journal_took_it() -> None:
    for entry_id in (1, 3):
        with pytest.raises(AssertionError):
            busy().confirm(entry_id, 1)
