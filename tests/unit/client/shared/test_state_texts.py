from __future__ import annotations

from pulsar_py.client.shared.state_texts import state_text


def test_each_state_has_its_word() -> None:
    assert state_text(is_closed=False, is_connected=True) == "connected"
    assert state_text(is_closed=False, is_connected=False) == "not connected"
    assert state_text(is_closed=True, is_connected=True) == "closed"
