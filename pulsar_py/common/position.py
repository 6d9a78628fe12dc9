"""`Position`: the place of an entry in a topic (values).

A position is a ledger id and an entry id, ordered first by ledger. `EARLIEST` sorts before every
entry and `LATEST` after; on the wire their -1 travels as 2^64-1. An entry id of -1 means "before
the first entry of this ledger". Other kinds of id (batch index, partition, chunk) belong to
`message_id`.

Source: Position and PositionFactory in Pulsar's managed-ledger.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_LONG = 2**63 - 1


class Position(NamedTuple):
    """One entry of a topic, or the gap before a ledger's first one (`entry_id` -1)."""

    ledger_id: int
    entry_id: int

    def __str__(self) -> str:
        """Pulsar's text form, `ledger:entry`."""
        return f"{self.ledger_id}:{self.entry_id}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """Read the `ledger:entry` form.

        Raises:
            ValueError: The text is not two integers around one colon.
        """
        ledger, separator, entry = text.partition(":")
        if not separator:
            raise ValueError(f"position {text!r} is not of the form ledger:entry")
        return cls(int(ledger), int(entry))


EARLIEST = Position(-1, -1)
LATEST = Position(MAX_LONG, MAX_LONG)
