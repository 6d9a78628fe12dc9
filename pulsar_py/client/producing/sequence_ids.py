"""Assigns the sequence ids of one producer, and tracks the last one sent and confirmed (pure).

Ids count up by one, from after `initial_sequence_id`, or after what the broker knows of the
producer's name (deduplication), or from 0. A message may have an id of its own; those without one
go on after it. An id that is not above all that went out may be a duplicate of an earlier message,
which the broker drops: such a message must not share a batch, or the broker would drop the others
too.

Source: ProducerImpl in Pulsar's Java client: msgIdGenerator, lastSequenceIdPushed,
lastSequenceIdPublished, isLastSequenceIdPotentialDuplicated.
"""

from __future__ import annotations

__all__ = ["SequenceIds"]


class SequenceIds:
    """The sequence ids of one producer: the next one, the last one sent, the last confirmed."""

    __slots__ = ("_is_settled", "last_confirmed", "last_given", "next_id")

    def __init__(self, initial_sequence_id: int | None = None) -> None:
        last = -1 if initial_sequence_id is None else initial_sequence_id
        self.next_id = last + 1
        # The highest id that a message got; at or below it an id may be a duplicate.
        self.last_given = last
        # The highest id that the broker confirmed.
        self.last_confirmed = last
        # Whether the broker's last id was taken in, or does not count (`initial_sequence_id`).
        self._is_settled = initial_sequence_id is not None

    def registered(self, last_sequence_id: int) -> None:
        """Take the last id that the broker stored, -1 for none; only the first call counts."""
        if not self._is_settled and last_sequence_id >= self.next_id:
            self.last_confirmed = self.last_given = last_sequence_id
            self.next_id = last_sequence_id + 1
        self._is_settled = True

    def reserve(self, sequence_id: int) -> None:
        """A message with an id of its own was put into a batch: the id counts as given out."""
        self.last_given = max(self.last_given, sequence_id)

    def give(self, wanted: int | None = None) -> int:
        """The id of the next message; `wanted` is its own id, if it has one."""
        if wanted is None:
            wanted = self.next_id
            self.next_id = wanted + 1
        else:
            self.next_id = max(self.next_id, wanted + 1)
        self.last_given = max(self.last_given, wanted)
        return wanted

    def give_run(self, count: int) -> int:
        """The first of `count` ids in a row."""
        # Hot path: produce in `make bench-client`.
        first = self.next_id
        self.next_id = first + count
        last = first + count - 1
        self.last_given = max(self.last_given, last)
        return first

    def is_possible_duplicate(self, sequence_id: int | None) -> bool:
        """Whether a message with that id of its own may have been sent before."""
        return sequence_id is not None and sequence_id <= self.last_given

    def confirmed(self, sequence_id: int) -> None:
        """The broker stored the message of this id."""
        self.last_confirmed = max(self.last_confirmed, sequence_id)
