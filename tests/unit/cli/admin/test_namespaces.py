"""Words about namespaces send and print what pulsar-admin does."""

from __future__ import annotations

import pytest

from tests.unit.cli.admin.replayed import Fake, differences, run


def test_what_was_recorded() -> None:
    assert not differences("namespaces")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("split-bundle t/n", "--bundle / --bundle-type"),
        ("get-topic-positions t/n", "--bundle"),
        ("unload -d b t/n", "--destinationBroker needs --bundle"),
        ("list-cluster t", "expected TENANT/CLUSTER"),
    ],
)
def test_options_that_are_missing(line: str, said: str) -> None:
    server, done = run("namespaces", *line.split())
    assert done.exit_code == 2
    assert said in done.stderr
    assert not server.requests


def test_bundles_split_at_positions() -> None:
    server, done = run("namespaces", "split-bundle", "-b", "0x0_0x8", "-u", "-sb", "1", "-sb", "2",
                       "-san", "specified_positions_divide", "t/n")  # fmt: skip
    assert done.exit_code == 0, done.output
    ((method, path, query, body),) = server.requests
    assert (method, path) == ("PUT", "/admin/v2/namespaces/t/n/0x0_0x8/split")
    assert query == {"unload": "true", "splitAlgorithmName": "specified_positions_divide"}
    assert body == [1, 2]


def test_the_namespaces_of_a_cluster() -> None:
    server = Fake({
        "namespaces/t": ["t/a", "t/b"],
        "namespaces/t/a": {"replication_clusters": ["c1"]},
        "namespaces/t/b": {"replication_clusters": ["c2"]},
    })  # fmt: skip
    _, done = run("namespaces", "list-cluster", "t/c2", fake=server)
    assert done.stdout == "t/b\n"
