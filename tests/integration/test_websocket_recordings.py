"""Dialogs on WebSocket go as Apache Pulsar held them.

All dialogs that need the same settings are held at once with one broker. What is meant to differ
stands in `DEVIATIONS` with its reason.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pulsar_py.client.client import Client
from pulsar_py.standalone import Broker
from tests.integration.websocket_recordings.player import Player

DIALOGS: Mapping[str, Any] = json.loads(
    (Path(__file__).parents[1] / "recordings/websocket_recordings.json").read_text()
)["dialogs"]

SLOW = {name for name in DIALOGS if name.startswith(("idle_", "pings_", "produce_deliver_"))}
"""They wait for seconds."""

DEVIATIONS = {
    "open_odd_handshakes f": "a page of another site may not shake hands, unless it is listed in "
    "webServiceAllowedOrigins: it could read and write every topic of a broker on loopback",
    "produce_through_unload r": "without a subscription nothing keeps the ledger that unloading "
    "closes; Apache Pulsar drops it at its next look, within two minutes",
    "open_names c10": "a topic named `.` has no key in a metadata store, as in ZooKeeper",
}
"""Reasons by dialog and connection."""


async def hold(names: list[str]) -> dict[str, str]:
    """Hold dialogs of the same settings at once; returns differences by name."""
    lines = DIALOGS[names[0]].get("with", [])
    config = dict(each.split("=", 1) for each in lines)
    config["acknowledgmentAtBatchIndexLevelEnabled"] = "true"
    failures: dict[str, str] = {}
    async with Broker(config=config) as broker:
        port = int(broker.web_service_url.rpartition(":")[2])
        async with Client(broker.service_url) as client:

            async def hold_one(name: str) -> None:
                for each in await Player(name, client, port).play(DIALOGS[name]["steps"]):
                    place, _, what = each.partition(": ")
                    failures[f"{name} {place}"] = what

            await asyncio.gather(*map(hold_one, names))
    return failures


def by_settings(names: set[str]) -> list[list[str]]:
    """Names of dialogs that one broker can hold, in groups."""
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        groups.setdefault(str(DIALOGS[name].get("with", [])), []).append(name)
    return list(groups.values())


async def differences(names: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in await asyncio.gather(*map(hold, by_settings(names))):
        found |= each
    return found


async def test_dialogs_go_as_recorded() -> None:
    found = await differences(DIALOGS.keys() - SLOW)
    assert {name: found[name] for name in found if name not in DEVIATIONS} == {}
    assert found.keys() == DEVIATIONS.keys(), "take off what is as recorded"


@pytest.mark.slow
async def test_dialogs_that_take_seconds_go_as_recorded() -> None:
    assert await differences(SLOW) == {}
