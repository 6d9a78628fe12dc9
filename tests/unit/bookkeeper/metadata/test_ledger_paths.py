from __future__ import annotations

import pytest

from pulsar_py.bookkeeper.metadata.ledger_paths import MAX_LEDGER_ID, ledger_id_of, ledger_path
from tests.unit.bookkeeper.recorded import RECORDED


@pytest.mark.parametrize(("ledger_id", "path"), RECORDED["ledger_paths"].items())
def test_paths_are_those_recorded(ledger_id: str, path: str) -> None:
    assert ledger_path("/ledgers", int(ledger_id)) == path
    assert ledger_id_of("/ledgers", path) == int(ledger_id)


def test_the_largest_id_has_a_path_below_any_root() -> None:
    path = ledger_path("/a/b", MAX_LEDGER_ID)
    assert path == "/a/b/922/3372/0368/5477/L5807"
    assert ledger_id_of("/a/b", path) == MAX_LEDGER_ID


@pytest.mark.parametrize(
    "path",
    [
        "/ledgers/available/readonly/127.0.0.1:3181",
        "/ledgers/idgen/ID-0000000001",
        "/ledgers/00/0000",
        "/ledgers/00/0000/0000",
        "/ledgers/00/000/L0000",
        "/ledgers/00/0000/L00000",
        "/ledgers/000/0000/0000/0000/L0005",  # an id that has a short path
        "/ledgers/21/4748/L3647",  # one that has a long path
        "/ledgers/\u0660\u0660/0000/L0005",  # digits, and not these
        "/ledger/00/0000/L0005",
        "/ledgers",
    ],
)
def test_other_paths_are_no_ledgers(path: str) -> None:
    assert ledger_id_of("/ledgers", path) is None


def test_in_the_long_layout_all_paths_are_long() -> None:
    path = "/ledgers/000/0000/0000/0000/L0005"
    assert ledger_path("/ledgers", 5, is_long=True) == path
    assert ledger_id_of("/ledgers", path, is_long=True) == 5
    assert ledger_id_of("/ledgers", "/ledgers/00/0000/L0005", is_long=True) is None
