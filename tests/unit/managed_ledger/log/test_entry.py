"""Entry: a place, bytes, and room for what the layer above makes of them."""

from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.entry import Entry


def test_an_entry_knows_its_position():
    entry = Entry(5, 7, b"data")
    assert entry.position == Position(5, 7)
    assert repr(entry) == "Entry(5:7, 4 bytes)"
    assert entry.summary is None
