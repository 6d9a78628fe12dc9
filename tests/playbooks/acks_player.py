"""Drives the client's grouping of acknowledgements from lines of text.

A message is written `1:5`, or `1:5/2` for the third of a batch; `1:5/2of4` is an id that came from
elsewhere (deserialized) and knows the size of its batch. Bits are written with index 0 on the right
and are set for messages that still wait.
"""

from __future__ import annotations

from pulsar_py.client.acknowledging.ack_grouping import (
    AcknowledgmentsGroupingTracker,
    NoAcknowledgmentsTracker,
)
from pulsar_py.common.message_id import MessageId
from tests.unit.client.entries import entry


def key_of(word):
    ledger_id, _, entry_id = word.partition(":")
    return int(ledger_id), int(entry_id)


def shown(key):
    return f"{key[0]}:{key[1]}"


def with_bits(key, bits):
    return shown(key) + (f"={bits:b}" if bits else "")


class AcksPlayer:
    def __init__(self):
        self.tracker = None
        self.entries = {}

    def execute(self, line):
        command, *words = line.split()
        return getattr(self, f"do_{command.replace('-', '_')}")(*words) or ""

    def do_tracker(self, *options):
        """`tracker batch-index full=3`, or `tracker non-persistent`."""
        sizes = [int(each.removeprefix("full=")) for each in options if each.startswith("full=")]
        self.entries = {}
        if "non-persistent" in options:
            self.tracker = NoAcknowledgmentsTracker()
        else:
            self.tracker = AcknowledgmentsGroupingTracker(
                max_size=sizes[0] if sizes else 1000,
                is_batch_index_enabled="batch-index" in options,
            )

    def do_receive(self, *words):
        """`receive 1:5 1:6x3 1:9=1:7,1:8,1:9`: a message, a batch of three, one in chunks."""
        for word in words:
            left, _, chunks = word.partition("=")
            where, _, size = left.partition("x")
            chunk_ids = tuple(map(key_of, chunks.split(","))) if chunks else ()
            key = key_of(where)
            self.entries[key] = entry(key, batch_size=int(size or 0), chunk_ids=chunk_ids)
            if chunk_ids:
                self.tracker.remember_chunks(key, chunk_ids)

    def do_ack(self, *words):
        """The whole entry is done or not, for each."""
        answers = []
        for word in words:
            where, _, index = word.partition("/")
            if "of" in index or key_of(where) not in self.entries:
                is_done = self.tracker.acknowledge_id(self.id_of(word))
            else:
                received = self.entries[key_of(where)]
                is_done = self.tracker.acknowledge(received, int(index or -1))
            answers.append(f"{word} {'entry done' if is_done else 'entry waits'}")
        return "   ".join([*answers, *self.states()])

    def id_of(self, word):
        where, _, index = word.partition("/")
        index, _, size = index.partition("of")
        ledger_id, entry_id = key_of(where)
        return MessageId(
            ledger_id, entry_id, batch_index=int(index or -1), batch_size=int(size or 0)
        )

    def states(self):
        if self.tracker.is_empty:
            return ["nothing to send"]
        return ["full"] if self.tracker.is_full else []

    def do_cumulative(self, word):
        last = self.tracker.acknowledge_cumulative(self.id_of(word))
        return "   ".join(["not moved" if last is None else f"up to {shown(last)}", *self.states()])

    def do_drop(self, *words):
        """Whole entries are acknowledged by the client itself."""
        self.tracker.acknowledge_entries(map(key_of, words))
        return "   ".join(self.states())

    def do_again(self, *words):
        """`again 1:5 1:6/111`: the broker sends entries, of which these bits wait."""
        answers = []
        for word in words:
            where, _, bits = word.partition("/")
            left = self.tracker.still_waiting(key_of(where), int(bits or "1", 2))
            answers.append(f"{where} {f'deliver {left:b}' if left else 'leave out'}")
        return "   ".join([*answers, *self.states()])

    def do_flush(self):
        group = self.tracker.take()
        parts = [] if group.cumulative is None else [f"cumulative {with_bits(*group.cumulative)}"]
        if group.individual:
            listed = " ".join(with_bits(key, bits) for key, bits in group.individual.items())
            parts.append(f"individual {listed}")
        return "   ".join(parts) or "nothing"

    def do_reconnect(self):
        self.tracker.forget_sent()
        return "   ".join(self.states())

    def do_seek(self):
        self.tracker.clear()
        return "   ".join(self.states())
