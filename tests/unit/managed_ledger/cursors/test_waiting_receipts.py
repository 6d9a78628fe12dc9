"""WaitingReceipts: each receipt is told once, after a write that began after it was added."""

from pulsar_py.managed_ledger.cursors.waiting_receipts import WaitingReceipts


class Receiver:
    """Notes what it is told."""

    def __init__(self):
        self.told = []

    def __call__(self, numbers, error):
        self.told.append((list(numbers), error))


def test_only_those_before_the_write_are_answered_by_it():
    first, second = Receiver(), Receiver()
    receipts = WaitingReceipts()
    receipts.add(first, 1)
    receipts.begin()
    receipts.add(second, 2)
    receipts.ended()
    assert first.told == [([1], None)]
    assert not second.told
    assert receipts
    receipts.begin()
    assert not receipts
    receipts.ended()
    assert first.told == [([1], None)]
    assert second.told == [([2], None)]


def test_a_receiver_is_told_once_a_write():
    receiver, other = Receiver(), Receiver()
    receipts = WaitingReceipts()
    assert receiver not in receipts.waiting
    receipts.add(receiver, 1)
    receipts.waiting[receiver].append(2)
    receipts.add(receiver, 3)
    assert other not in receipts.waiting
    receipts.begin()
    assert receiver not in receipts.waiting
    receipts.add(receiver, 5)
    receipts.ended()
    assert receiver.told == [([1, 2, 3], None)]


def test_after_a_failed_write_all_wait_in_their_order():
    first, second = Receiver(), Receiver()
    receipts = WaitingReceipts()
    receipts.add(first, 1)
    receipts.begin()
    receipts.add(second, 2)
    receipts.add(first, 3)
    receipts.put_back()
    assert not first.told
    receipts.begin()
    receipts.ended()
    assert first.told == [([1, 3], None)]
    assert second.told == [([2], None)]


def test_a_write_that_begins_before_the_last_one_ended_has_both_groups():
    receiver = Receiver()
    receipts = WaitingReceipts()
    receipts.add(receiver, 1)
    receipts.begin()
    receipts.add(receiver, 2)
    receipts.begin()
    receipts.ended()
    assert receiver.told == [([1, 2], None)]


def test_the_end_tells_all_of_them_the_error():
    receiver = Receiver()
    receipts = WaitingReceipts()
    receipts.add(receiver, 1)
    receipts.begin()
    receipts.add(receiver, 2)
    error = ValueError("over")
    receipts.end(error)
    receipts.end(None)
    receipts.ended()
    assert receiver.told == [([1, 2], error)]
