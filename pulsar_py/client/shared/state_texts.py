"""Words for the state of what a client opened, as `repr` shows it (pure)."""

from __future__ import annotations

__all__ = ["state_text"]


def state_text(*, is_closed: bool, is_connected: bool) -> str:
    """`closed`, `connected`, or `not connected`: it looks for a broker."""
    if is_closed:
        return "closed"
    return "connected" if is_connected else "not connected"
