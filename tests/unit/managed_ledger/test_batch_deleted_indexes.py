"""BatchDeletedIndexes: bit sets by position."""

from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.batch_deleted_indexes import BatchDeletedIndexes


def filled():
    found = BatchDeletedIndexes()
    for ledger_id, entry_id in ((5, 1), (5, 0), (3, 9), (7, 2)):
        found.put(Position(ledger_id, entry_id), 0b101)
    return found


def test_what_is_put_is_found_in_order():
    found = filled()
    found.put(Position(5, 1), 0b1)
    assert len(found) == 4
    assert found.get(Position(5, 1)) == 0b1
    assert found.get(Position(5, 2)) is None
    assert found.get(Position(9, 2)) is None
    assert Position(7, 2) in found
    assert Position(7, 3) not in found
    assert [str(position) for position, _ in found.items()] == ["3:9", "5:0", "5:1", "7:2"]
    assert sorted(found.positions()) == [position for position, _ in found.items()]
    found.check()


def test_removing_through_a_position_includes_it():
    found = filled()
    found.remove_through(Position(5, 0))
    assert [str(position) for position, _ in found.items()] == ["5:1", "7:2"]
    found.remove_through(Position(5, 1))
    found.remove_through(Position(6, 100))
    found.check()
    assert len(found) == 1


def test_discarding_twice_counts_once():
    found = filled()
    assert found.discard(Position(7, 2))
    assert not found.discard(Position(7, 2))
    found.check()
    found.clear()
    assert not found
    found.remove_through(Position(9, 9))
