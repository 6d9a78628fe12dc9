"""Apache's `pulsar-admin` 4.0.8 runs each of its recorded command lines against our broker.

The lines are those of `tests/recordings/pulsar_admin.json`: every word with every flag. What they
name is there before each: topics with messages and subscriptions, partitioned where the word is
about partitions; what a line creates is new, what it deletes was made for it. A line has to end well, or to be
refused with the reason that `REFUSED` has.
"""

from __future__ import annotations

import http.client
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest

from pulsar_py.blocking import Client
from pulsar_py.testing import BrokerThread
from tests.cluster.admin_lines import AdminLines
from tests.cluster.java_programs import NotInstalledError
from tests.unit.admin_client.recorded_calls import recording

pytestmark = [pytest.mark.slow, pytest.mark.interop]

SETTINGS: Final = {
    "forceDeleteTenantAllowed": True,
    "forceDeleteNamespaceAllowed": True,
    "brokerDeleteInactiveTopicsEnabled": False,
}
BUNDLE: Final = "0x00000000_0x40000000"
TOPIC: Final = "persistent://t/n/a b"
SUBSCRIPTIONS: Final = ("s", "s/1", "s%2F1")
"""The Java client writes `%` for a slash and encodes that again: to a broker the name is the last one."""

REFUSED: Final = {
    "transactions": "transactionCoordinatorEnabled",
    "brokers namespaces -u": "404",
    "brokers shutdown": "is not run here",
    "tenants update t": "NullPointerException",
    "topics get-shadow-topics": "NullPointerException",
    "namespaces get-schema-autoupdate-strategy": "NullPointerException",
    "topics set-entry-filters": "Entry filter 'f1' not found",
    "topicPolicies set-entry-filters": "Entry filter 'f1' not found",
    "namespaces set-entry-filters": "Entry filter 'f1' not found",
    "topics expire-messages -s s/1 -t": "almost catch up",
    "schemas get -v 3": "not found",
    "tenants update --admin-roles": "Cannot remove cluster standalone",
    "topics set-replication-clusters": "have to include this one",
    "topics remove-properties persistent": "key, the property's name, is required",
    "topics stats non-persistent": "not found",
    "topics unload x-partition-0": "not yet created",
    "clusters update-peer-clusters": "Peer cluster c3 does not exist",
    "clusters get-cluster-migration": "Cluster does not exist",
}
"""By the beginning of a line, what the error has; the longest beginning counts.

A NullPointerException is the tool's own, at an answer without a body, which Apache Pulsar gives, too.
"""


class World:
    """What the lines are about, and the REST calls that make it."""

    def __init__(self, broker: BrokerThread, schema: Path) -> None:
        self._connection = http.client.HTTPConnection(broker.web_service_url[7:])
        self._client = Client(broker.service_url)
        self._numbers = itertools.count()
        self._schema = schema
        self._has_messages = False

    def close(self) -> None:
        self._client.close()
        self._connection.close()

    def rest(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        data = None if body is None else json.dumps(body)
        headers = {} if data is None else {"Content-Type": "application/json"}
        try:
            self._connection.request(method, f"/admin/v2{path}", data, headers)
            answer = self._connection.getresponse()
        except (OSError, http.client.HTTPException):  # it was idle while the tool ran
            self._connection.close()
            return self.rest(method, path, body)
        return answer.status, answer.read()

    def prepared(self, words: list[str]) -> list[str]:
        """Make what a line needs; returns the line with the names of what is there."""
        self._make_all(words)
        fresh = f"fresh{next(self._numbers)}"
        renamed = {"schema.json": str(self._schema), "0x00000000_0x80000000": BUNDLE}
        renamed |= self._new_ones(words, fresh)
        if words[:2] in (["bookies", "get-bookie-rack"], ["bookies", "delete-bookie-rack"]):
            self.rest("POST", "/bookies/racks-info/bk:3181?group=g1", {"rack": "/r"})
        if words[:2] == ["topics", "create-subscription"]:
            renamed |= {"s": fresh, "s/1": f"{fresh}/1"}
        if words[:2] == ["topics", "get-message-by-id"]:
            words = [*words[:2], "-l", self._first_ledger(), "-e", "0", words[-1]]
        return [renamed.get(word, word) for word in words]

    def _new_ones(self, words: list[str], fresh: str) -> dict[str, str]:
        """Names of what a line creates, or deletes: that is made here."""
        line, renamed = " ".join(words), {}
        if words[1] == "set-persistence":
            renamed["7"] = "2"
        if line.startswith(("tenants create", "tenants delete")):
            renamed[words[-1]] = fresh
            if words[1] == "delete":
                self.rest("PUT", f"/tenants/{fresh}", {"allowedClusters": ["standalone"]})
        if line.startswith(("clusters create ", "clusters delete ")):
            renamed["c1"] = fresh
            if words[1] == "delete":
                self.rest("PUT", f"/clusters/{fresh}", {"serviceUrl": "http://h:8080"})
        if line.startswith(("namespaces create", "namespaces delete ")):
            renamed["t/n"] = f"t/{fresh}"
            if words[1] == "delete":
                self.rest("PUT", f"/namespaces/t/{fresh}")
        if words[:2] in (
            ["topics", "create"],
            ["topics", "create-partitioned-topic"],
            ["topics", "create-shadow-topic"],
        ):
            renamed |= {TOPIC: f"{TOPIC} {fresh}", "x": fresh}
        return renamed

    def _first_ledger(self) -> str:
        _, data = self.rest("GET", f"/persistent/t/n/{quote('a b')}/internalStats")
        return str(json.loads(data)["ledgers"][0]["ledgerId"])

    def _make_all(self, words: list[str]) -> None:
        for cluster in ("c1", "c2"):
            self.rest("PUT", f"/clusters/{cluster}", {"serviceUrl": "http://h:8080"})
        self.rest("PUT", "/tenants/t", {"allowedClusters": ["standalone", "c1", "c2"]})
        self.rest("PUT", "/namespaces/t/n", {"replication_clusters": ["standalone"]})
        self.rest("PUT", "/tenants/public", {"allowedClusters": ["standalone"]})
        self.rest("PUT", "/namespaces/public/default")  # `clusters delete -a` deletes all there are
        self.rest("PUT", "/resourcegroups/rg", {})
        self.rest("POST", "/clusters/c1/failureDomains/dom", {"brokers": []})
        is_partitioned = "partition" in words[1] and words[1] != "list-partitioned-topics"
        for namespace, topic in (
            ("t/n", "a b"),
            ("t/n", "x"),
            ("t/n", "y"),
            ("t/n", "src"),
            ("public/default", "x"),
        ):
            self._make_topic(
                f"/persistent/{namespace}/{quote(topic)}", is_partitioned=is_partitioned
            )
        if not is_partitioned:
            self._fill()

    def _make_topic(self, path: str, *, is_partitioned: bool) -> None:
        was_partitioned = b'"partitions":0' not in self.rest("GET", f"{path}/partitions")[1]
        if is_partitioned != was_partitioned:
            self.rest(
                "DELETE",
                f"{path}/partitions?force=true" if was_partitioned else f"{path}?force=true",
            )
            self._has_messages = False
        if is_partitioned:
            self.rest("PUT", f"{path}/partitions", 2)
        else:
            self.rest("PUT", path)
        for name in SUBSCRIPTIONS:
            self.rest("PUT", f"{path}/subscription/{quote(name, safe='')}")

    def _fill(self) -> None:
        _, data = self.rest("GET", f"/persistent/t/n/{quote('a b')}/internalStats")
        if json.loads(data).get("numberOfEntries"):
            return
        schema = json.loads(self._schema.read_text())
        self.rest("POST", f"/schemas/t/n/{quote('a b')}/schema", schema)
        with self._client.create_producer(TOPIC) as producer:
            for _ in range(10):
                producer.send(b"x")


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerThread]:
    with BrokerThread(config=SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def tool(broker: BrokerThread) -> Iterator[AdminLines]:
    try:
        with AdminLines(broker.web_service_url, broker.service_url) as running:
            yield running
    except NotInstalledError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def world(broker: BrokerThread, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    schema = tmp_path_factory.mktemp("schema") / "schema.json"
    schema.write_text(json.dumps({"type": "STRING", "schema": "", "properties": {}}))
    made = World(broker, schema)
    yield made
    made.close()


def expected_refusal(line: str) -> str | None:
    found = [start for start in REFUSED if line.startswith(start)]
    return REFUSED[max(found, key=len)] if found else None


GROUPS: Final = sorted({each["arguments"][0] for each in recording()["calls"]})


@pytest.mark.parametrize("group", GROUPS)
def test_every_line_ends_well_or_has_its_reason(tool: AdminLines, world: World, group: str) -> None:
    wrong: list[str] = []
    calls: list[dict[str, Any]] = recording()["calls"]
    for each in calls:
        words: list[str] = each["arguments"]
        line = " ".join(words)
        if words[0] != group or line.startswith("brokers shutdown"):
            continue
        done = tool.run(world.prepared(words))
        reason = expected_refusal(line)
        if done.is_done != (reason is None) or (reason is not None and reason not in done.errors):
            wrong.append(f"{line}: {done.is_done} {done.output[:200]} {done.errors[:400]}")
    assert not wrong, "\n".join(wrong)
