"""Reads the first entries of a piece from the files of a broker on the same machine (edge).

The broker whose Unix socket the option `shortCircuitSocketPath` names says where entries lie, and
lends its files; no byte of the entries goes through it. `stored_runs` ends where entries have to
come from the broker: at one that is not flushed yet, is encrypted, a chunk, a marker or of a
transaction, has a wrong checksum, or was deleted. What such entries mean is decided by
`BrokerEntrySource` alone, which reads the rest of the piece.

Source: short-circuit local reads of HDFS, for the idea.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import closing
from functools import lru_cache

from pulsar_py.client.short_circuit.stored_range import StoredRange
from pulsar_py.common.position import Position
from pulsar_py.spark.planning.pieces import Piece
from pulsar_py.spark.reading.entry_source import Run

__all__ = ["stored_runs"]

logger = logging.getLogger(__name__)


def stored_runs(path: str, service_url: str, piece: Piece) -> Generator[Run, None, Position]:
    """The messages of a piece that can be read from files, in order, in runs.

    Returns the first entry that has to come from the broker, or the piece's end. That is the
    piece's start where nothing is lent, or the piece may have entries of several ledgers, or of
    other topics: the broker is asked for a ledger, whoever has it.

    Args:
        path: The broker's socket.
        service_url: Has to lead to the same broker; else nothing is read.
        piece: What a task reads.
    """
    start = piece.start
    is_of_one_ledger = start.entry_id >= 0 and start.ledger_id == piece.end.ledger_id
    if not piece.has_known_ledgers or not is_of_one_ledger:
        return start
    stored = StoredRange(path, service_url, piece.topic, piece.start, piece.end)
    with closing(stored):
        while (runs := stored.read_block()) is not None:
            runs.reverse()
            while runs:
                yield runs.pop()  # not held here, since its memory is used again
    if stored.refusal is not None:
        _warn(stored.refusal)
    return stored.position


@lru_cache(maxsize=1000)
def _warn(refusal: str) -> None:
    """Say why nothing is lent, once for each reason: a query has many pieces."""
    logger.warning(
        "short-circuit reads fail, entries are read through the broker", extra={"detail": refusal}
    )
