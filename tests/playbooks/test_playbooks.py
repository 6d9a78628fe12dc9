"""Managed ledger, dispatch, balancing of load and the client's acknowledging, driven from text."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.testing.playbook import check_playbook
from tests.playbooks.acks_player import AcksPlayer
from tests.playbooks.balancing_player import BalancingPlayer
from tests.playbooks.cursor_player import CursorPlayer
from tests.playbooks.dispatch_player import DispatchPlayer
from tests.playbooks.ledger_player import LedgerPlayer

HERE = Path(__file__).parent
PLAYERS = {
    "acks": AcksPlayer,
    "balancing": BalancingPlayer,
    "cursor": CursorPlayer,
    "dispatch": DispatchPlayer,
    "ledger": LedgerPlayer,
}


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(HERE.glob("*/*.txt")) if path.parent.name in PLAYERS],
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_the_playbook_holds(path, request):
    player = PLAYERS[path.parent.name]()
    try:
        check_playbook(path, player.execute, is_rewriting=request.config.getoption("--rewrite"))
    finally:
        if isinstance(player, DispatchPlayer):
            player.close()
