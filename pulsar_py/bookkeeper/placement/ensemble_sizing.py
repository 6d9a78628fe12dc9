"""How large a ledger's ensemble is made where bookies are missing. Pure.

Each ledger records its own sizes. So where fewer bookies are there than a policy asks for, the next
ledger is made for those that are, down to the ack quorum: entries stay as safe as the least that
the policy promises, and topics go on. Below that no ledger is made. A policy that was not kept is
kept again once enough bookies have been steady: one that comes and goes does not end ledger after
ledger.
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
