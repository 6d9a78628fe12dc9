"""WaitingReceipts: each callback is called once, after a write that began after it was added."""

from pulsar_py.managed_ledger.cursors.waiting_receipts import WaitingReceipts


def test_only_those_before_the_write_are_answered_by_it():
    told = []
    receipts = WaitingReceipts()
    receipts.add(lambda error: told.append(("first", error)))
    receipts.begin()
    receipts.add(lambda error: told.append(("second", error)))
    receipts.ended()
    assert told == [("first", None)]
    assert receipts
    receipts.begin()
    assert not receipts
    receipts.ended()
    assert told == [("first", None), ("second", None)]


def test_after_a_failed_write_all_wait_in_their_order():
    told = []
    receipts = WaitingReceipts()
    receipts.add(lambda _: told.append("first"))
    receipts.begin()
    receipts.add(lambda _: told.append("second"))
    receipts.put_back()
    assert told == []
    receipts.begin()
    receipts.ended()
    assert told == ["first", "second"]


def test_the_end_tells_all_of_them_the_error():
    told = []
    receipts = WaitingReceipts()
    receipts.add(told.append)
    receipts.begin()
    receipts.add(told.append)
    error = ValueError("over")
    receipts.end(error)
    receipts.end(None)
    receipts.ended()
    assert told == [error, error]
