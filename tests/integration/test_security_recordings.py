"""Every kind of caller gets at every command and route what Apache Pulsar gave it.

What is meant to differ stands in `security_recordings/deviations.txt` with its reason. Cases of
commands and routes that are not served are left out; nobody gets anything there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from pulsar_py.standalone import Broker
from tests.integration.security_recordings.callers import RECORDINGS, Secrets
from tests.integration.security_recordings.player import Player, is_served

_LEAST_PLAYED = {"strict": 5000, "anonymous": 300, "original": 40, "tls-required": 80}
"""Answers that are compared at least, so that nobody leaves them out unnoticed."""


async def play(settings: str, folder: Path, timed_played: asyncio.Barrier) -> Player:
    """Play what was recorded with some settings; what waits for tokens to expire comes first.

    The other cases keep the loop busy, which would move the times that are compared.
    """
    folder.mkdir(exist_ok=True)
    secrets = Secrets.make(folder)
    async with Broker(config=secrets.settings(settings)) as broker:
        player = Player(broker, secrets)
        await player.prepare()
        recording = RECORDINGS["recordings"][settings]
        cases = [case for case in recording["binary"] if is_served(case)]
        await asyncio.gather(*(player.play_case(each) for each in cases if each.get("timed")))
        await timed_played.wait()
        for case in cases:
            if not case.get("timed"):
                await player.play_case(case)
        for row in recording["rest"]:
            if player.is_row_served(row):
                await player.play_row(row)
    return player


@pytest.fixture(scope="module")
def players(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Player]:
    """All recordings, played at once: most of the time of some is waiting for tokens to expire."""

    async def play_all() -> list[Player]:
        folder = tmp_path_factory.mktemp("security")
        timed_played = asyncio.Barrier(len(_LEAST_PLAYED))
        plays = (play(each, folder / each, timed_played) for each in _LEAST_PLAYED)
        return await asyncio.gather(*plays)

    return dict(zip(_LEAST_PLAYED, asyncio.run(play_all()), strict=True))


def deviations() -> dict[str, str]:
    """Reasons by pattern."""
    lines = (Path(__file__).parent / "security_recordings/deviations.txt").read_text().splitlines()
    parts = [line.partition("|") for line in lines if line and not line.startswith("#")]
    return {pattern: reason for pattern, _, reason in parts}


@pytest.mark.parametrize("settings", _LEAST_PLAYED)
def test_callers_get_what_was_recorded(settings: str, players: Mapping[str, Player]) -> None:
    player = players[settings]
    unexpected = {
        name: difference
        for name, difference in player.failures.items()
        if not any(fnmatchcase(name, pattern) for pattern in deviations())
    }
    assert not unexpected
    assert player.played_count >= _LEAST_PLAYED[settings]


def test_nobody_gets_in_whom_apache_pulsar_refuses(players: Mapping[str, Player]) -> None:
    let_in = [name for player in players.values() for name in player.let_in]
    assert not let_in


def test_every_deviation_is_one_and_has_a_reason(players: Mapping[str, Player]) -> None:
    differing = [name for player in players.values() for name in player.failures]
    for pattern, reason in deviations().items():
        assert reason
        assert any(fnmatchcase(name, pattern) for name in differing), f"{pattern}: take it off"
