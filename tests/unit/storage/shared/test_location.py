from __future__ import annotations

from pulsar_py.storage.shared.location import LOCATION_BYTES, Location


def test_the_bytes_are_those_of_the_table() -> None:
    stored = Location(log_id=1, offset=1 << 32, length=3, count=4).encode()

    assert stored.hex() == "0000000100000001000000000000000300000004"
    assert len(stored) == LOCATION_BYTES
    assert Location.decode(stored) == Location(1, 1 << 32, 3, 4)
