"""Every recorded conversation with Apache Pulsar 4.2.4, held with our broker.

All scenarios of one set of settings run at once against one broker; each test looks at the outcome
of its own. Every scenario that is due is played twice: on a broker in memory, and on one on disk,
whose metadata are in SQLite. `NOT_DUE` and `DEVIATIONS` in `transcripts/expectations.py` say what
differs; whether these lists are up to date is looked at in memory alone.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from functools import cache
from urllib.parse import urlsplit

import pytest

from pulsar_py.server.config import BrokerConfig
from pulsar_py.standalone import Broker
from tests.integration.transcripts.expectations import DEVIATIONS, NOT_DUE
from tests.integration.transcripts.player import Outcome, Target, play_all, settle
from tests.integration.transcripts.recording import Scenario, load_recording

RECORDING = load_recording()
DUE = [name for name in RECORDING.scenarios if name not in NOT_DUE]

REFUSED = {"transactionCoordinatorEnabled=true"}
"""Settings of the recording that this version refuses to start with."""


def settings_of(name: str, *, deviates: bool) -> tuple[str, ...]:
    """The lines of broker.conf that a scenario is played with."""
    recorded = RECORDING.settings[RECORDING.scenarios[name].settings]
    lines = tuple(line for line in recorded if line not in REFUSED)
    return (*lines, *DEVIATIONS[name].settings) if deviates and name in DEVIATIONS else lines


async def play_with(
    settings: tuple[str, ...], scenarios: list[Scenario], data_dir: str | None
) -> dict[str, Outcome]:
    """Play scenarios against one fresh broker, in memory without a directory."""
    config = BrokerConfig.from_texts(dict(line.split("=", 1) for line in settings))
    async with Broker(config=config, data_dir=data_dir) as broker:
        binary, web = urlsplit(broker.service_url), urlsplit(broker.web_service_url)
        assert binary.hostname
        assert binary.port
        assert web.hostname
        assert web.port
        target = Target(binary.hostname, binary.port, web.hostname, web.port)
        await settle(target)
        return await play_all(RECORDING, scenarios, target)


def play_groups(
    groups: dict[tuple[str, ...], list[Scenario]], parent: str | None = None
) -> dict[str, Outcome]:
    """Play each group against a broker with its settings, all at once; on disk below `parent`."""

    async def play() -> list[dict[str, Outcome]]:
        return await asyncio.gather(
            *(
                play_with(settings, scenarios, parent and f"{parent}/{number}")
                for number, (settings, scenarios) in enumerate(groups.items())
            )
        )

    return {name: outcome for outcomes in asyncio.run(play()) for name, outcome in outcomes.items()}


def play_as_it_goes_here(parent: str | None) -> dict[str, Outcome]:
    """What scenarios showed, as they have to go here: in memory all, on disk those that are due."""
    groups: defaultdict[tuple[str, ...], list[Scenario]] = defaultdict(list)
    for name, scenario in RECORDING.scenarios.items():
        if parent is not None and name in NOT_DUE:
            continue
        played = DEVIATIONS[name].apply(scenario) if name in DEVIATIONS else scenario
        groups[settings_of(name, deviates=True)].append(played)
    return play_groups(groups, parent)


@cache
def outcomes() -> dict[str, Outcome]:
    """Of brokers in memory."""
    return play_as_it_goes_here(None)


@cache
def outcomes_on_disk() -> dict[str, Outcome]:
    """Of brokers with their metadata in SQLite and their ledgers on disk."""
    with tempfile.TemporaryDirectory(prefix="transcripts") as parent:
        return play_as_it_goes_here(parent)


@cache
def outcomes_as_recorded() -> dict[str, Outcome]:
    """What the scenarios with deviations show, played as they were recorded."""
    groups: defaultdict[tuple[str, ...], list[Scenario]] = defaultdict(list)
    for name in DEVIATIONS:
        groups[settings_of(name, deviates=False)].append(RECORDING.scenarios[name])
    return play_groups(groups)


@pytest.mark.parametrize("name", DUE)
def test_goes_as_recorded(name: str) -> None:
    outcome = outcomes()[name]
    assert outcome.has_passed, "\n".join(outcome.differences)


@pytest.mark.parametrize("name", DUE)
def test_goes_as_recorded_on_disk(name: str) -> None:
    outcome = outcomes_on_disk()[name]
    assert outcome.has_passed, "\n".join(outcome.differences)


@pytest.mark.parametrize("name", NOT_DUE)
def test_what_is_not_due_does_not_work_yet(name: str) -> None:
    assert not outcomes()[name].has_passed, f"{name} works: take it off the list"


@pytest.mark.parametrize("name", DEVIATIONS)
def test_deviations_deviate(name: str) -> None:
    assert not outcomes_as_recorded()[name].has_passed, f"{name} goes as recorded: take it off"
    assert DEVIATIONS[name].reason


def test_lists_name_scenarios() -> None:
    assert set(NOT_DUE) | set(DEVIATIONS) <= set(RECORDING.scenarios)
    assert not set(NOT_DUE) & set(DEVIATIONS)
