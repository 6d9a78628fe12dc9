"""The settings and errors of `pulsar-py broker`; the process itself is in tests/cluster."""

from __future__ import annotations

import gc
import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsar_py.cli.broker import ClusterBrokerOptions, broker_of, run, store_settings
from pulsar_py.cluster_stores import ClusterStores
from pulsar_py.server.config import BrokerConfig

EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"


@pytest.fixture(autouse=True)
def _process_as_before() -> Iterator[None]:
    thresholds, root = gc.get_threshold(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    gc.set_threshold(*thresholds)
    gc.unfreeze()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("", "clusterName is not set"),
        ("clusterName=c\n", "metadataStoreUrl is not set"),
        ("clusterName=c\nmetadataStoreUrl=etcd:http://h\n", "metadata store etcd is not supported"),
        (
            "clusterName=c\nzookeeperServers=rocksdb:///tmp\n",
            "metadata store rocksdb is not supported",
        ),
        (
            f"clusterName=c\nloadManagerClassName={EXTENSIBLE}\n",
            "ExtensibleLoadManagerImpl: Who owns what",
        ),
        (
            "clusterName=c\nmetadataStoreUrl=h\nbookkeeperMetadataServiceUri=zk+null://h/ledgers\n",
            "the layout 'zk+null' is not supported",
        ),
        ("clusterName=c\nsaslJaasServerRoleTokenSignerSecretPath=a\n", "not offered"),
        ("clusterName=c\ntransactionCoordinatorEnabled=true\n", "transactions are not in"),
    ],
)
def test_what_keeps_it_from_starting_is_one_line_and_exit_code_1(
    settings: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(settings)
    assert run(ClusterBrokerOptions(config_file=file, log_level="ERROR")) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("Error: ")
    assert words in line


def test_a_zookeeper_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    overrides = (
        "clusterName=c",
        f"metadataStoreUrl=127.0.0.1:{port}",
        "metadataStoreOperationTimeoutSeconds=1",
    )
    assert run(ClusterBrokerOptions(overrides=overrides, log_level="ERROR")) == 1
    line = capsys.readouterr().err
    assert line.startswith(f"Error: zk:127.0.0.1:{port}: no connection for 1 s")


@pytest.mark.parametrize(
    ("config", "host", "advertised"),
    [
        ({}, None, socket.getfqdn()),
        ({}, "127.0.0.1", ""),
        ({"advertisedAddress": "b1"}, None, "b1"),
    ],
)
def test_clients_are_told_the_machines_name_where_nothing_else_is_said(
    config: dict[str, str], host: str | None, advertised: str
) -> None:
    settings = BrokerConfig(metadataStoreUrl="h", clusterName="c", **config)
    stores = ClusterStores(store_settings(settings))
    broker = broker_of(ClusterBrokerOptions(host=host), settings, stores)
    assert broker._config.advertisedAddress == advertised


def test_ports_of_the_command_line_are_those_of_tls_where_the_settings_open_no_others() -> None:
    settings = BrokerConfig(
        metadataStoreUrl="h",
        clusterName="c",
        brokerServicePort=None,
        brokerServicePortTls=6651,
        webServicePort=None,
        webServicePortTls=8443,
    )
    stores = ClusterStores(store_settings(settings))
    broker = broker_of(ClusterBrokerOptions(port=1, web_port=2), settings, stores)
    assert (broker._port, broker._web_port) == (None, None)
    assert (broker._config.brokerServicePortTls, broker._config.webServicePortTls) == (1, 2)
