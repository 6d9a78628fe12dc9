"""What a broker of ours leaves is taken over by Apache Pulsar's, and the other way round.

Both have their metadata in one ZooKeeper and their ledgers on the same bookies, and no state of
their own. The first one is stopped cleanly, or killed with its ledgers open.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.apache_broker import ApacheBroker
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.our_broker import OurBroker
from tests.cluster.takeover_scenarios import SCENARIOS, SETTINGS, Scenario

pytestmark = [pytest.mark.slow, pytest.mark.interop]

APACHE_SETTINGS: Final = {
    **SETTINGS,
    "managedLedgerDefaultMarkDeleteRateLimit": 1_000,  # acknowledgements are stored at once
}
CURSORS_SECONDS: Final = 2.0
"""A killed broker has stored its cursors before: ours does within a second."""


@dataclass
class TakenOver:
    """The broker that goes on, and what the one before it left."""

    broker: OurBroker | ApacheBroker
    scenarios: Mapping[type[Scenario], Scenario]


def make(kind: str, directory: Path, cluster: BookKeeperCluster) -> OurBroker | ApacheBroker:
    url = cluster.zookeeper.url
    if kind == "ours":
        return OurBroker(directory / "ours", url, settings=SETTINGS)
    return ApacheBroker(directory / "apache", url, settings=APACHE_SETTINGS)


@pytest.fixture(
    scope="module",
    params=[
        "ours-stopped-apache",
        "apache-stopped-ours",
        "ours-killed-apache",
        "apache-killed-ours",
    ],
)
def taken_over(
    request: pytest.FixtureRequest,
    bookkeeper: BookKeeperCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[TakenOver]:
    """One broker has ended after all scenarios have written, the next one runs."""
    first_kind, how, second_kind = request.param.split("-")
    directory = tmp_path_factory.mktemp(request.param)
    first = make(first_kind, directory, bookkeeper)
    second = make(second_kind, directory, bookkeeper)
    namespace = f"public/{request.param}"
    scenarios = {kind: kind(namespace, is_clean=how == "stopped") for kind in SCENARIOS}
    try:
        if isinstance(first, ApacheBroker):
            first.initialize_cluster()
        first.start()
        first.ask("PUT", f"namespaces/{namespace}", {"bundles": {"numBundles": 2}})
        first.ask("POST", f"namespaces/{namespace}/deduplication", True)
        for scenario in scenarios.values():
            scenario.write(first)
        time.sleep(CURSORS_SECONDS)
        if how == "stopped":
            first.stop()
        else:
            first.kill()
        second.start()
        yield TakenOver(second, scenarios)
        second.stop()
    finally:
        first.kill()
        second.kill()


@pytest.mark.parametrize("kind", SCENARIOS, ids=lambda kind: kind.__name__)
def test_another_broker_goes_on(taken_over: TakenOver, kind: type[Scenario]) -> None:
    taken_over.scenarios[kind].check(taken_over.broker)
