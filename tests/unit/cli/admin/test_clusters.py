"""Words about clusters and isolation send and print what pulsar-admin does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.admin.replayed import Fake, differences, run


def test_what_was_recorded() -> None:
    assert not differences("clusters", "ns-isolation-policy")


def test_a_file_gives_what_options_do_not(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text('{"serviceUrl": "http://a:8080", "brokerServiceUrl": "pulsar://a:6650"}')
    server, done = run("clusters", "create", "--url", "http://b:8080",
                       "--cluster-config-file", str(file), "c1")  # fmt: skip
    assert done.exit_code == 0, done.output
    ((_, _, _, body),) = server.requests
    assert body["serviceUrl"] == "http://b:8080"
    assert body["brokerServiceUrl"] == "pulsar://a:6650"


def test_a_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text("serviceUrl: x")
    server, done = run("clusters", "update", "--cluster-config-file", str(file), "c1")
    assert done.exit_code == 2
    assert "expected a JSON object" in done.stderr
    assert not server.requests


def test_the_own_cluster_is_marked() -> None:
    server = Fake({"brokers/configuration/runtime": {"clusterName": "standalone"}})
    _, done = run("clusters", "list", "--current", fake=server)
    assert done.stdout == "standalone(*)\n"


@pytest.mark.parametrize("given", ["min_limit=1", "a=b,c=d"])
def test_isolation_needs_both_parameters(given: str) -> None:
    _, done = run("ns-isolation-policy", "set", "--namespaces", "t/n", "--primary", "b1",
                  "--auto-failover-policy-type", "min_available",
                  "--auto-failover-policy-params", given, "c1", "p")  # fmt: skip
    assert done.exit_code == 2
    assert "min_limit=N,usage_threshold=N" in done.stderr
