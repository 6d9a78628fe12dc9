"""`Plan`: what a move would do, and what stands in its way (values).

Texts are whole sentences for whoever runs the command.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from pulsar_py.metadata import paths
from pulsar_py.migration.moved_keys import Fate, is_cursor, root_of
from pulsar_py.migration.roles import Role

SHOWN: Final = 20
"""Keys that one list names at most."""

INVALID: Final = (
    "with --renumber ledgers get other ids, and what was saved outside of the brokers becomes "
    "invalid: message ids that programs have kept, positions of readers, offsets in checkpoints of "
    "Spark, and ids in properties of messages, such as those of dead letters. Subscriptions go on "
    "where they were"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a move does."""

    is_done: bool = False
    """Nothing is left to do."""
    is_begun: bool = False
    """An earlier call has begun it."""
    cluster: str
    former_cluster: str
    is_renumbered: bool
    ledgers: Counter[Role] = field(default_factory=Counter)
    """How many of each role."""
    verified: int = 0
    """How many of them are there already."""
    fates: dict[str, Fate] = field(default_factory=dict)
    """By the path of each key."""
    next_ledger_id: int = 0
    problems: Sequence[str] = ()
    """Why it is refused; nothing was written."""

    def lines(self) -> Iterator[str]:
        """What it does, for people."""
        if self.is_done:
            yield "everything was moved, and compared, by an earlier call"
            return
        if self.is_begun:
            yield f"goes on: {self.verified} ledgers are there and were compared"
        name = "" if self.cluster == self.former_cluster else f", in place of {self.former_cluster}"
        yield f"cluster: {self.cluster}{name}"
        for what, count in self._counts().items():
            yield f"{what}: {count}"
        for role in Role:
            if self.ledgers[role]:
                yield f"ledgers of {role.value}: {self.ledgers[role]}"
        if self.is_renumbered:
            yield INVALID
        else:
            yield f"ids are kept; new ledgers get ids from {self.next_ledger_id} on"
        for fate, text in (
            (Fate.REPLACE, "replaced there"),
            (Fate.KEEP, "kept as it is there"),
        ):
            yield from self._listed(fate, text)

    def as_json(self) -> dict[str, object]:
        """The same for programs, with all keys that are replaced or kept."""
        return {
            "cluster": self.cluster,
            "formerCluster": self.former_cluster,
            "isDone": self.is_done,
            "isRenumbered": self.is_renumbered,
            "verifiedLedgers": self.verified,
            "nextLedgerId": self.next_ledger_id,
            "counts": self._counts(),
            "ledgers": {role.value: self.ledgers[role] for role in Role if self.ledgers[role]},
            "replaced": self._with(Fate.REPLACE),
            "kept": self._with(Fate.KEEP),
            "problems": list(self.problems),
        }

    def _counts(self) -> dict[str, int]:
        return {
            "topics": self._count(paths.MANAGED_LEDGERS, lambda path: not is_cursor(path)),
            "subscriptions": self._count(paths.MANAGED_LEDGERS, is_cursor),
            "topics with schemas": self._count(paths.SCHEMAS),
            "tenants and namespaces": self._count(paths.POLICIES),
            "keys": len(self.fates),
        }

    def _with(self, fate: Fate) -> list[str]:
        return [path for path, each in self.fates.items() if each is fate]

    def _listed(self, fate: Fate, text: str) -> Iterator[str]:
        found = self._with(fate)
        for path in found[:SHOWN]:
            yield f"{text}: {path}"
        if len(found) > SHOWN:
            yield f"{text}: {len(found) - SHOWN} more"

    def _count(self, root: str, is_counted: Callable[[str], bool] = lambda _: True) -> int:
        return sum(root_of(path) == root and is_counted(path) for path in self.fates)


def refusals(fates: dict[str, Fate]) -> list[str]:
    """One sentence for each key that can't be there twice."""
    found = [path for path, fate in fates.items() if fate is Fate.REFUSE]
    texts = [f"{path} is there already, with another value" for path in found[:SHOWN]]
    if len(found) > SHOWN:
        texts.append(f"{len(found) - SHOWN} more keys are there already, with other values")
    if found:
        texts.append(
            "policies can be kept as they are there (--existing keep) or replaced "
            "(--existing replace); a topic that is on both sides has to be removed from one"
        )
    return texts
