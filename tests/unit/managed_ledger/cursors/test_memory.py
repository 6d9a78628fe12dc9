"""CursorMemory: what was touched longest ago leaves first."""

from pulsar_py.managed_ledger.cursors.memory import CursorMemory


class Holder:
    def __init__(self, staying=()):
        self.staying = set(staying)
        self.evicted = []

    def evict(self, ledger_id):
        if ledger_id in self.staying:
            return False
        self.evicted.append(ledger_id)
        return True


def test_the_ledgers_touched_longest_ago_leave_until_it_fits():
    memory, holder = CursorMemory(100), Holder()
    for ledger_id in (1, 2, 3, 4):
        memory.touch(holder, ledger_id, 30)
    memory.touch(holder, 1, 40)
    memory.make_room()
    assert holder.evicted == [2]
    assert memory.used_bytes == 100
    assert memory.room_bytes == 0


def test_what_has_to_stay_is_passed_over():
    memory, holder, other = CursorMemory(50), Holder([1]), Holder()
    memory.touch(holder, 1, 30)
    memory.touch(other, 1, 30)
    memory.make_room()
    assert (holder.evicted, other.evicted) == ([], [1])
    assert memory.used_bytes == 30
    memory.make_room()


def test_a_cursor_that_closes_gives_everything_back():
    memory, holder, other = CursorMemory(50), Holder(), Holder()
    for ledger_id in (1, 2):
        memory.touch(holder, ledger_id, 10)
        memory.touch(other, ledger_id, 10)
    memory.forget(holder, 1)
    memory.forget(holder)
    assert memory.used_bytes == 20
    assert memory.room_bytes == 30
