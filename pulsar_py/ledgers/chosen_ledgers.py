"""`ChosenLedgers`: a ledger store in which a ledger can have an id that was given elsewhere.

Brokers never need it: ids of their ledgers come from the cluster's sequence. What moves ledgers
from one store into another, with the ids that message ids and cursors name, does. Whoever uses it
has to take care that nobody else gets those ids.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from pulsar_py.common.errors import StorageError
from pulsar_py.ledgers.store import LedgerListener, LedgerOptions, LedgerStore, LedgerWriter


class ChosenLedgers(LedgerStore):
    """A store that such a tool can use."""

    @abstractmethod
    async def create_chosen(
        self, ledger_id: int, listener: LedgerListener, options: LedgerOptions
    ) -> LedgerWriter:
        """A writer of a new ledger with that id, or of one that an earlier call left open.

        It goes on behind its `last_add_confirmed`: a store may have the earlier call's entries, or
        want all of them again. The entries have to be the same as those of the earlier call.

        Raises:
            StorageError: The ledger belongs to somebody else, or it can't be made now.
        """


def check_same_owner(
    ledger_id: int, found: Mapping[str, bytes], wanted: Mapping[str, bytes]
) -> None:
    """Refuse a ledger that has other labels than the one that is wanted.

    Raises:
        StorageError: So it is.
    """
    if dict(found) != dict(wanted):
        raise StorageError(
            f"ledger {ledger_id} exists already, and belongs to something else: its labels are "
            f"{_shown(found)}, expected {_shown(wanted)}"
        )


def _shown(labels: Mapping[str, bytes]) -> str:
    texts = (f"{key}={value.decode(errors='replace')}" for key, value in sorted(labels.items()))
    return ", ".join(texts) or "none"
