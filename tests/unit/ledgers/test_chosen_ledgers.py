from __future__ import annotations

import pytest

from pulsar_py.common.errors import StorageError
from pulsar_py.ledgers.chosen_ledgers import check_same_owner


def test_a_ledger_of_another_owner_is_told_by_its_labels() -> None:
    check_same_owner(7, {"a": b"1"}, {"a": b"1"})
    with pytest.raises(StorageError, match=r"ledger 7 exists already.* are none, expected a=1"):
        check_same_owner(7, {}, {"a": b"1"})
