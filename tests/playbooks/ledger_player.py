"""Drives a LedgerState from lines of text."""

from __future__ import annotations

from msgspec.structs import replace

from pulsar_py.common.position import EARLIEST, LATEST, Position
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.log.ledger_format import LedgerList, LedgerRecord
from pulsar_py.managed_ledger.log.ledger_state import LedgerState

NAMED = {"earliest": EARLIEST, "latest": LATEST}


def position(text):
    return NAMED.get(text) or Position.parse(text)


def closed(ledger_id, entries_count, *, size_bytes=None, closed_millis=1000):
    """A closed ledger, of ten bytes an entry unless told otherwise."""
    size = entries_count * 10 if size_bytes is None else size_bytes
    return LedgerRecord(ledger_id, entries_count, size, closed_millis, is_closed=True)


def ledgers_from(words):
    """`5=3 7=2+`: ledger 5 with three entries, ledger 7 with two, still open."""
    records = []
    open_entries = 0
    for word in words:
        ledger_id, _, count = word.partition("=")
        if count.endswith("+"):
            open_entries = int(count[:-1])
            state = LedgerState(LedgerList(records))
            state.ledger_created(int(ledger_id), 0)
            if open_entries:
                state.confirmed(open_entries, open_entries * 10)
            return state
        count, _, millis = count.partition("@")
        records.append(closed(int(ledger_id), int(count), closed_millis=int(millis or 1000)))
    return LedgerState(LedgerList(records))


class LedgerPlayer:
    def __init__(self):
        self.ledgers = None
        self.config = ManagedLedgerConfig()

    def execute(self, line):
        command, *words = line.split()
        answer = getattr(self, f"do_{command.replace('-', '_')}")(*words)
        if self.ledgers is not None:
            self.ledgers.check()
        return answer or ""

    def do_ledgers(self, *words):
        self.ledgers = ledgers_from(words)
        return self.do_show()

    def do_set(self, name, value):
        kind = type(getattr(self.config, name))
        self.config = replace(self.config, **{name: kind(value)})

    def do_show(self):
        state = self.ledgers
        shown = " ".join(
            f"{record.ledger_id}={record.entries_count}{'' if record.is_closed else '+'}"
            for record in state.ledgers.values()
        )
        return (
            f"{shown}   last {state.last_confirmed_entry}   first {state.first_position}"
            f"   {state.entries_count} entries, {state.size_bytes} bytes"
        )

    def do_create(self, ledger_id, millis="0"):
        gone = self.ledgers.ledger_created(int(ledger_id), int(millis))
        return self.do_show() + (f"   placeholders {gone}" if gone else "")

    def do_confirm(self, count):
        self.ledgers.confirmed(int(count), int(count) * 10)
        return self.do_show()

    def do_close(self, entries, millis):
        self.ledgers.ledger_closed(int(entries), int(entries) * 10, int(millis))
        return self.do_show()

    def do_next(self, *positions):
        return "  ".join(
            str(self.ledgers.next_valid_position(position(each))) for each in positions
        )

    def do_previous(self, *positions):
        return "  ".join(str(self.ledgers.previous_position(position(each))) for each in positions)

    def do_count(self, lower, upper):
        return str(self.ledgers.count_between(position(lower), position(upper)))

    def do_after(self, start, count):
        return str(self.ledgers.position_after_entries(position(start), int(count)))

    def do_size_after(self, start):
        return str(self.ledgers.size_after(position(start)))

    def do_contains(self, *positions):
        return " ".join(
            "yes" if self.ledgers.contains(position(each)) else "no" for each in positions
        )

    def do_roll(self, entries, size, now_millis, jitter="0"):
        is_due = self.ledgers.is_rollover_due(
            self.config,
            entries_count=int(entries),
            size_bytes=int(size),
            now_millis=int(now_millis),
            jitter=float(jitter),
        )
        return "roll" if is_due else "stay"

    def do_trim(self, slowest, now_millis):
        where = None if slowest == "none" else position(slowest)
        return str(self.ledgers.trimmable(self.config, where, int(now_millis)))

    def do_drop(self, *ledger_ids):
        self.ledgers.ledgers_trimmed([int(each) for each in ledger_ids])
        return self.do_show()
