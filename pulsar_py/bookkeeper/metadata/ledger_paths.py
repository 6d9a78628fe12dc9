"""The paths of ledgers' metadata below the cluster's root (pure).

    ids below 2**31 - 1   ten digits, split 2-4-4             /00/0000/L0005
    all others            nineteen digits, split 3-4-4-4-4    /000/0000/0021/4748/L3647

In a cluster whose layout is the long one, all ids stand in the second way.

Source: HierarchicalLedgerManager, LongHierarchicalLedgerManager in Apache BookKeeper.
"""

from __future__ import annotations

import re
from typing import Final

FIRST_LONG_ID: Final = 2**31 - 1
MAX_LEDGER_ID: Final = 2**63 - 1
SHORT_LEVELS_COUNT: Final = 3
"""Parts of a short path; of a long one there are two more."""
LONG_LEVELS_COUNT: Final = 5

TOP_OF_SHORT: Final = re.compile(r"\d{2}", re.ASCII)
TOP_OF_LONG: Final = re.compile(r"\d{3}", re.ASCII)
MIDDLE: Final = re.compile(r"\d{4}", re.ASCII)
LEAF: Final = re.compile(r"L\d{4}", re.ASCII)

LAYOUT: Final = "LAYOUT"
"""Names which scheme of paths the cluster has."""
HIERARCHICAL: Final = "org.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"
LONG_HIERARCHICAL: Final = "org.apache.bookkeeper.meta.LongHierarchicalLedgerManagerFactory:1"
KNOWN_LAYOUTS: Final = (HIERARCHICAL, LONG_HIERARCHICAL)
AVAILABLE: Final = "available"
"""Bookies that take entries, and below `READ_ONLY` those that do not."""
READ_ONLY: Final = "readonly"


def ledger_path(root: str, ledger_id: int, *, is_long: bool = False) -> str:
    """The path of one ledger's metadata; `is_long` says that all paths are long."""
    assert 0 <= ledger_id <= MAX_LEDGER_ID, ledger_id
    if ledger_id < FIRST_LONG_ID and not is_long:
        digits = f"{ledger_id:010d}"
        return f"{root}/{digits[:2]}/{digits[2:6]}/L{digits[6:]}"
    digits = f"{ledger_id:019d}"
    middle = "/".join(digits[at : at + 4] for at in range(3, 15, 4))
    return f"{root}/{digits[:3]}/{middle}/L{digits[15:]}"


def ledger_id_of(root: str, path: str, *, is_long: bool = False) -> int | None:
    """The ledger whose metadata stands at a path; None if no ledger's can."""
    if not path.startswith(f"{root}/"):
        return None
    *parts, leaf = path[len(root) + 1 :].split("/")
    top = {
        SHORT_LEVELS_COUNT: TOP_OF_SHORT,
        LONG_LEVELS_COUNT: TOP_OF_LONG,
    }.get(len(parts) + 1)
    if top is None or not top.fullmatch(parts[0]) or not LEAF.fullmatch(leaf):
        return None
    if not all(MIDDLE.fullmatch(part) for part in parts[1:]):
        return None
    ledger_id = int("".join(parts) + leaf[1:])
    return ledger_id if ledger_path(root, ledger_id, is_long=is_long) == path else None
