"""What the managed ledgers of a simulation have promised; it outlives every crash.

Acknowledgements are kept as (position, index in the batch), and of each cursor three sets: what is
acknowledged in memory, what is durable at least, and what an interrupted reset may have left. What
a restart finds has to lie between them, and becomes what is known then. Each invariant has a name
and is counted whenever it was checked and held.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pulsar_py.common.position import EARLIEST, Position
from tests.crash.managed_ledger.harness import InvariantError

BATCH = 3
"""Messages an entry counts as."""

RECOVERED = "confirmed implies recovered"
WHOLE = "unconfirmed is all or nothing"
REUSED = "positions are never reused"
BACK = "mark-delete never moves back except by reset"
AGAIN = "persisted acknowledgements are never delivered again"
INVENTED = "nothing unacknowledged is skipped or trimmed"
DELETED = "deleted stays deleted, created stays"
SERVED = "corruption is reported, never served"
ENDS = "every call ends"
CAUSE = "errors have a cause"
WORKS = "it works again once the disk does"
NAMED = "named ledgers exist"

INVARIANTS = (
    RECOVERED,
    WHOLE,
    REUSED,
    BACK,
    AGAIN,
    INVENTED,
    DELETED,
    SERVED,
    ENDS,
    CAUSE,
    WORKS,
    NAMED,
)

Acks = set[tuple[Position, int]]


@dataclass
class CursorPromise:
    """One subscription's cursor."""

    memory: Acks = field(default_factory=set)
    durable: Acks = field(default_factory=set)
    doubt: Acks = field(default_factory=set)
    floor: Position = EARLIEST
    """A mark-delete position that is durable."""
    latest: Position = EARLIEST
    """The mark-delete position in memory when it was looked at last."""
    is_in_doubt: bool = False
    """Whether a reset was interrupted, and nothing was written since."""
    is_maybe_missing: bool = False
    """Whether its creation or deletion was interrupted."""
    is_placed: bool = True
    """Whether it is known where it begins: what is confirmed while it is created may be behind."""

    def written(self, acks: Acks, mark_delete: Position) -> None:
        """Take a state that is durable now."""
        self.durable = acks
        self.floor = mark_delete
        self.doubt = set()
        self.is_in_doubt = False

    def begin_reset(self, target: Acks, position: Position) -> None:
        """Either state may be found from now on."""
        self.durable = self.durable & target
        self.doubt = self.doubt | target
        self.floor = min(self.floor, position)
        self.is_in_doubt = True


@dataclass
class TopicPromise:
    """One managed ledger."""

    sent: dict[bytes, None] = field(default_factory=dict)  # neither confirmed nor failed, in order
    failed: dict[bytes, None] = field(default_factory=dict)  # told so in this life or before
    confirmed: dict[Position, bytes] = field(default_factory=dict)
    cursors: dict[str, CursorPromise] = field(default_factory=dict)
    is_maybe_missing: bool = False
    """Whether its creation or deletion was interrupted."""

    def before(self, position: Position) -> Acks:
        """Everything below a position."""
        return {
            (each, index) for each in self.confirmed if each < position for index in range(BATCH)
        }


@dataclass
class Model:
    """All topics, and what was checked how often."""

    topics: dict[str, TopicPromise] = field(default_factory=dict)
    highest: dict[str, Position] = field(default_factory=dict)  # ever given out, by name
    held: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)  # seen where raising would be swallowed
    damaged: set[str] = field(default_factory=set)  # directories in which bits were flipped
    is_over: bool = False  # the process is dead: what its objects still say counts no more
    may_be_fenced: bool = False  # the metadata did what looks like another owner

    def require(self, name: str, *, holds: bool, detail: object) -> None:
        """Count an invariant, or fail with its name."""
        if not holds:
            raise InvariantError(f"{name}: {detail}")
        self.held[name] += 1

    def raise_violations(self) -> None:
        """Fail with what a listener has seen."""
        if self.violations:
            raise InvariantError(self.violations[0])


class Listener:
    """One topic's producer side; contexts are the entries' bytes."""

    def __init__(self, name: str, model: Model) -> None:
        self._name = name
        self._model = model
        self._promise = model.topics[name]

    def on_appended(self, ledger_id: int, first_entry_id: int, contexts: list[bytes]) -> None:
        model, promise = self._model, self._promise
        if model.is_over:
            return
        for entry_id, data in enumerate(contexts, first_entry_id):
            position = Position(ledger_id, entry_id)
            if position <= model.highest.get(self._name, EARLIEST):
                model.violations.append(f"{REUSED}: {self._name} {position}")
            if data not in promise.sent:
                model.violations.append(f"{WHOLE}: {self._name} {position} confirmed twice")
            model.held[REUSED] += 1
            promise.sent.pop(data, None)
            promise.confirmed[position] = data
            model.highest[self._name] = position

    def on_append_failed(self, contexts: list[bytes], error: Exception) -> None:
        if self._model.is_over:
            return
        for data in contexts:
            self._promise.sent.pop(data, None)
            self._promise.failed[data] = None

    def on_fenced(self, error: Exception) -> None:
        if not self._model.is_over and not self._model.may_be_fenced:
            self._model.violations.append(f"{CAUSE}: {self._name} fenced: {error}")
