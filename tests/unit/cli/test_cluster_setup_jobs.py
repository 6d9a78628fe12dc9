"""cluster_setup_jobs: what is refused before ZooKeeper is asked; the rest is in tests/cluster."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from pulsar_py.cli.commands import main


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"-md": "etcd:http://h:1"},
            "metadataStoreUrl=etcd:http://h:1: the metadata store etcd is not supported",
        ),
        (
            {"-cms": "oxia://h:1"},
            "configurationMetadataStoreUrl=oxia://h:1: the metadata store oxia is not",
        ),
        ({"-c": "a/b"}, "--cluster 'a/b' is no name of a cluster"),
        ({"-c": " "}, "--cluster ' ' is no name of a cluster"),
        (
            {"--existing-bk-metadata-service-uri": "zk+ms://h:1/ledgers"},
            "the layout 'zk+ms' is not supported",
        ),
    ],
)
def test_what_is_not_served_is_refused_in_one_line(changes: dict[str, str], words: str) -> None:
    options = {"-c": "c", "-md": "zk:h:1", "-cms": "zk:h:1", "-uw": "http://w:8080", **changes}
    arguments = [word for pair in options.items() for word in pair]
    done = CliRunner().invoke(main, ["initialize-cluster-metadata", *arguments])
    assert done.exit_code == 1
    (line,) = done.output.splitlines()
    assert line.startswith("Error: ")
    assert words in line
