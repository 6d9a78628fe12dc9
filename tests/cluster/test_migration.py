"""A standalone broker's directory moves into a real cluster, and a cluster into a directory.

Official clients write before and read on afterwards, from their subscriptions. The command is
killed several times on its way.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cluster.apache_broker import ask
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.java_programs import NotInstalledError
from tests.cluster.migration_scenarios import AUTHORIZED, MORE, SECRET, Rights
from tests.cluster.our_broker import PULSAR_PY, OurBroker, tool
from tests.cluster.takeover_scenarios import SCENARIOS, Scenario
from tests.cluster.takeover_scenarios import SETTINGS as TAKEOVER
from tests.interop.broker_process import BrokerProcess

pytestmark = [pytest.mark.slow, pytest.mark.interop]

SETTINGS: Final = {
    **TAKEOVER,
    "delayedDeliveryTrackerFactoryClassName": (
        "org.apache.pulsar.broker.delayed.BucketDelayedDeliveryTrackerFactory"
    ),
    "delayedDeliveryMinIndexCountPerBucket": 20,
}
ALL: Final = (*SCENARIOS, *MORE)
KEPT, RENUMBERED = "public/kept", "public/renumbered"
CURSORS_SECONDS: Final = 2.0
"""A killed broker has stored its cursors before."""
KILLS: Final = 4
MAX_STARTS: Final = 40


class Standalone(BrokerProcess):
    """A broker of its own in a directory, to scenarios."""

    reads_batch_indexes_of_closed_cursors = True

    def ask(self, method: str, path: str, body: object = None) -> Any:  # Any: JSON
        return ask(self.web_service_url, method, path, body)


def standalone(directory: Path, **more: object) -> Standalone:
    together = {**SETTINGS, **more}
    settings = [word for name, value in together.items() for word in ("--set", f"{name}={value}")]
    return Standalone(directory, *settings, log=directory.with_suffix(".log"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BookKeeperCluster]:
    """Bookies without ledgers."""
    made = BookKeeperCluster(tmp_path_factory.mktemp("empty"), bookies_count=3)
    try:
        made.start()
    except NotInstalledError as error:
        pytest.skip(str(error))
    yield made
    made.kill()


@pytest.fixture(scope="module")
def ours(cluster: BookKeeperCluster, tmp_path_factory: pytest.TempPathFactory) -> OurBroker:
    made = OurBroker(tmp_path_factory.mktemp("ours"), cluster.zookeeper.url, settings=SETTINGS)
    made.initialize_cluster()
    return made


def written(directory: Path, namespace: str) -> Mapping[type[Scenario], Scenario]:
    """All scenarios have left something in a directory, whose broker was killed."""
    scenarios = {kind: kind(namespace, is_clean=False) for kind in ALL}
    broker = standalone(directory)
    broker.start()
    try:
        broker.ask("PUT", f"namespaces/{namespace}", {"bundles": {"numBundles": 2}})
        broker.ask("POST", f"namespaces/{namespace}/deduplication", True)
        for scenario in scenarios.values():
            scenario.write(broker)
        time.sleep(CURSORS_SECONDS)
    finally:
        broker.kill()
    return scenarios


def migrate(ours: OurBroker, directory: Path, *options: str) -> tuple[str, int]:
    """Run the command to its end, killed a few times before; what it printed, how often killed."""
    command = [PULSAR_PY, "migrate", str(directory), "--config", str(ours.configure()), *options]
    chance = random.Random(33)
    kills = 0
    for _ in range(MAX_STARTS):
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        timeout = chance.uniform(0.8, 4.0) if kills < KILLS else 300.0
        try:
            printed, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            kills += 1
            continue
        assert process.returncode == 0, printed
        return printed, kills
    raise AssertionError("it did not end")


@pytest.fixture(scope="module")
def kept(
    ours: OurBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[type[Scenario], Scenario]]:
    """A broker on the cluster has what a standalone one had."""
    directory = tmp_path_factory.mktemp("kept") / "data"
    scenarios = written(directory, KEPT)
    printed, kills = migrate(ours, directory)
    assert kills >= 1
    assert "moved, and compared" in printed
    refused = subprocess.run(
        standalone(directory).command(), capture_output=True, text=True, check=False, timeout=60
    )
    assert refused.returncode == 1
    assert "was moved into cluster standalone" in refused.stderr
    ours.start()
    yield scenarios
    ours.kill()


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_a_broker_on_the_cluster_goes_on(
    kept: Mapping[type[Scenario], Scenario], ours: OurBroker, kind: type[Scenario]
) -> None:
    kept[kind].check(ours)


def test_ledgers_of_each_kind_are_in_the_cluster(
    kept: Mapping[type[Scenario], Scenario], ours: OurBroker
) -> None:
    del kept
    printed = tool("ledger", "list", "--config", str(ours.config), "--output", "json")
    found = {json.loads(line)["component"] for line in printed.splitlines()}
    kinds = {"managed-ledger", "schema", "compacted-ledger", "delayed-index-bucket"}
    assert kinds <= found, found
    assert tool("ledger", "orphans", "--config", str(ours.config), "--output", "json") == ""


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Settings of a broker that asks who is there."""
    file = tmp_path_factory.mktemp("secret") / "secret.key"
    file.write_bytes(SECRET)
    return {**AUTHORIZED, "tokenSecretKey": f"file://{file}"}


def test_rights_hold_in_the_cluster(
    kept: Mapping[type[Scenario], Scenario],
    cluster: BookKeeperCluster,
    ours: OurBroker,
    secret: Mapping[str, object],
    tmp_path: Path,
) -> None:
    ours.stop()
    secured = OurBroker(tmp_path, cluster.zookeeper.url, settings={**SETTINGS, **secret})
    with secured:
        rights = kept[Rights]
        assert isinstance(rights, Rights)
        rights.check_tokens(secured, secured.web_service_url)
    ours.start()


@pytest.fixture(scope="module")
def exported(
    kept: Mapping[type[Scenario], Scenario],
    ours: OurBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Standalone, Mapping[type[Scenario], Scenario]]]:
    """Another directory went into the cluster, with other ids, and all of it into a third one."""
    del kept  # the cluster has ledgers
    top = tmp_path_factory.mktemp("exported")
    scenarios = written(top / "data", RENUMBERED)
    ours.stop()
    refused = subprocess.run(
        [PULSAR_PY, "migrate", str(top / "data"), "--config", str(ours.configure())],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert refused.returncode == 1
    assert "has ledgers already" in refused.stdout
    printed, _ = migrate(ours, top / "data", "--renumber", "--existing", "replace")
    assert "message ids that programs have kept" in printed
    printed, _ = migrate(ours, top / "back", "--export")
    assert "exported, and compared" in printed
    broker = standalone(top / "back")
    broker.start()
    yield broker, scenarios
    broker.kill()


RENUMBERED_SCENARIOS: Final = [kind for kind in ALL if kind.__name__ != "Holes"]
"""Holes compares ids of ledgers, which are others."""


@pytest.mark.parametrize("kind", RENUMBERED_SCENARIOS, ids=lambda kind: kind.__name__)
def test_with_other_ids_and_out_again(
    exported: tuple[Standalone, Mapping[type[Scenario], Scenario]], kind: type[Scenario]
) -> None:
    broker, scenarios = exported
    scenarios[kind].check(broker)


def test_rights_hold_in_the_copy(
    exported: tuple[Standalone, Mapping[type[Scenario], Scenario]], secret: Mapping[str, object]
) -> None:
    """The last test of that broker: it is stopped for one that asks who is there."""
    broker, scenarios = exported
    broker.stop()
    with standalone(broker.data_dir, **secret) as secured:
        rights = scenarios[Rights]
        assert isinstance(rights, Rights)
        rights.check_tokens(secured, secured.web_service_url)
    broker.start()
