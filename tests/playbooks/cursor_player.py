"""Drives a CursorState from lines of text; time in seconds."""

from __future__ import annotations

from pulsar_py.common.errors import InvalidCursorPositionError
from pulsar_py.common.position import LATEST, Position
from pulsar_py.managed_ledger.cursors.state import CursorState
from tests.playbooks.ledger_player import ledgers_from, position


def words_of(text):
    """`1100`: bits as one reads them, the highest index first; a set one waits."""
    bits = int(text, 2)
    return [bits] if bits else [0]


class CursorPlayer:
    def __init__(self):
        self.ledgers = None
        self.cursor = None
        self.now = 0.0
        self.write = None

    def execute(self, line):
        command, *words = line.split()
        try:
            answer = getattr(self, f"do_{command.replace('-', '_')}")(*words)
        except InvalidCursorPositionError as error:
            answer = f"refused: {error}\n{self.do_show()}"
        if self.cursor is not None:
            self.cursor.check()
        return answer or ""

    def do_ledgers(self, *words):
        self.ledgers = ledgers_from(words)

    def do_cursor(self, mark_delete, *options):
        self.cursor = CursorState(
            self.ledgers,
            position(mark_delete),
            is_batch_index_ack_enabled="no-batch-index" not in options,
        )
        self.now, self.write = 0.0, None
        return self.do_show()

    def do_show(self):
        state = self.cursor
        batches = " ".join(
            f"{where}={bits:b}" for where, bits in state.batch_deleted_indexes.items()
        )
        return "   ".join(
            [
                f"mark-delete {state.mark_delete_position}",
                f"read {state.read_position}",
                f"holes {state.individual_deleted_messages}",
                *([f"batches {batches}"] if batches else []),
                f"backlog {state.backlog_count()}",
                *(["dirty"] if state.is_dirty else []),
            ]
        )

    def do_ack(self, *words):
        """`ack 5:0 5:4/1100`: whole entries, and one of which two indexes still wait."""
        positions, sets = [], []
        for word in words:
            where, _, bits = word.partition("/")
            positions.append(Position.parse(where))
            sets.append(words_of(bits) if bits else None)
        count = self.cursor.acknowledge(positions, sets if any(sets) else None, self.now)
        ignored = [f"ignored from {positions[count]} on\n"] if count < len(positions) else []
        return "".join([*ignored, self.do_show()])

    def do_cumulative(self, word, *properties):
        where, _, bits = word.partition("/")
        numbers = {name: int(value) for name, value in (each.split("=") for each in properties)}
        self.cursor.acknowledge_cumulative(
            position(where), words_of(bits) if bits else None, numbers or None, self.now
        )
        return self.do_show()

    def do_append(self, count):
        self.ledgers.confirmed(int(count), int(count) * 10)
        return self.do_show()

    def do_acknowledged(self, *words):
        return " ".join(
            "yes" if self.cursor.is_acknowledged(Position.parse(each)) else "no" for each in words
        )

    def do_read(self, count, until="latest"):
        """Reads at most so many entries, run after run, and says which."""
        found, limit = [], position(until)
        while len(found) < int(count):
            run = self.cursor.next_run(int(count) - len(found), limit if until else LATEST)
            if run is None:
                break
            self.cursor.read_through(run.ledger_id, run.last)
            found += [
                f"{run.ledger_id}:{entry_id}"
                for entry_id in range(run.first, run.last + 1)
                if not self.cursor.is_acknowledged(Position(run.ledger_id, entry_id))
            ]
        return f"{' '.join(found) or 'nothing'}   read {self.cursor.read_position}"

    def do_rewind(self):
        self.cursor.rewind()
        return self.do_show()

    def do_seek(self, where, *options):
        self.cursor.seek(position(where), is_forced="forced" in options)
        return self.do_show()

    def do_reset(self, word):
        where, _, bits = word.partition("/")
        target = self.cursor.reset_target(position(where), words_of(bits) if bits else None)
        self.cursor.become(target, self.now)
        return self.do_show()

    def do_skip(self, count, *options):
        target = self.cursor.position_after_skipping(
            int(count), counts_acknowledged="all" in options
        )
        return self.do_cumulative(str(target))

    def do_trim(self, *ledger_ids):
        self.ledgers.ledgers_trimmed([int(each) for each in ledger_ids])
        self.cursor.settle()
        return self.do_show()

    def do_at(self, seconds):
        self.now = float(seconds)

    def do_due(self):
        due_at = self.cursor.due_at()
        return "never" if due_at is None else f"at {due_at:g}"

    def do_write(self, *options):
        self.write = self.cursor.changes_due(self.now, is_forced="forced" in options)
        return "nothing" if self.write is None else f"write {self.write.mark_delete_position}"

    def do_written(self):
        self.cursor.persisted(self.write)
        return f"persistent {self.cursor.persistent_mark_delete_position}"

    def do_failed(self):
        self.cursor.failed(self.write)
        return self.do_due()

    def do_properties(self):
        return str(self.cursor.properties)
