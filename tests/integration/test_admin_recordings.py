"""Our administration answers as Apache Pulsar's did, call by call, and as its routes declare.

What is not answered so yet stands in `admin_recordings/not_due.txt`, what is meant to differ in
`deviations.txt` with its reason; a listed call that is answered as recorded fails, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import pulsar
import pytest

from pulsar_py.testing.broker_thread import BrokerThread
from tests.integration.admin_recordings.not_due import read_deviations, read_not_due
from tests.integration.admin_recordings.player import Player, load_groups
from tests.rest_conformance import Conformance, declared_routes

GROUPS = load_groups()
LISTED = read_not_due()
CONFORMANCE = Conformance(declared_routes())


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerThread]:
    with BrokerThread() as broker:
        yield broker


@pytest.mark.parametrize("group", GROUPS)
def test_calls_are_answered_as_recorded(group: str, broker: BrokerThread) -> None:
    listed = {call for name, call in LISTED if name == group}
    client = pulsar.Client(
        broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    )
    player = Player(broker.web_service_url, client, listed, CONFORMANCE)
    player.play(GROUPS[group])
    client.close()
    unexpected = {name: found for name, found in player.failures.items() if name not in listed}
    assert not unexpected
    assert not listed - player.failures.keys(), "answered as recorded now: take them off the list"


def test_every_deviation_has_a_reason() -> None:
    assert all(read_deviations().values())


def test_the_lists_name_calls_that_exist() -> None:
    known = {(group, step.get("name")) for group, steps in GROUPS.items() for step in steps}
    unknown = {each for each in LISTED - known if not each[1].startswith("setup-")}
    assert not unknown
