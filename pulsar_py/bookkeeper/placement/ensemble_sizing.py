"""Chooses a smaller ensemble and quorums where bookies are missing (pure).

Each ledger records its own sizes. So if fewer bookies are available than a policy asks for, the
next ledger gets a smaller ensemble, down to the ack quorum: each entry is still on as many bookies
as a receipt promises, and the topic stays writable. With fewer bookies no ledger is created. The
policy's own sizes are used again once enough bookies have been steady, so that a bookie that comes
and goes does not cause a new ledger each time.
"""

from __future__ import annotations

from msgspec.structs import replace

from pulsar_py.ledgers.store import LedgerOptions


def fitting(
    policy: LedgerOptions, *, there: int, steady: int, is_reduced: bool
) -> LedgerOptions | None:
    """The options of the next ledger, None where no ledger can be made.

    Args:
        policy: What is asked for.
        there: Bookies that may be taken now.
        steady: Those of them that have been there for a while.
        is_reduced: Whether the last ledger of this policy had to be smaller.
    """
    least = policy.ack_quorum_size
    if there < least:
        return None
    usable = max(steady, least) if is_reduced else there
    size = min(policy.ensemble_size, usable)
    return replace(
        policy, ensemble_size=size, write_quorum_size=min(policy.write_quorum_size, size)
    )
