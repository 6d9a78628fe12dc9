"""The composition root."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest

from pulsar_py.common.errors import (
    ConfigurationError,
    CorruptDataError,
    DirectoryLockedError,
    InstanceMismatchError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.names import TopicName
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.security.authentication import Authenticators
from pulsar_py.standalone import Broker, bookie_settings

RECORDINGS = Path(__file__).parents[1] / "recordings"


def test_settings_of_the_storage_engine_have_its_units() -> None:
    config = BrokerConfig(dbStorage_writeCacheMaxSizeMb=2, flushInterval=1500, logSizeLimit=1 << 20)
    settings = bookie_settings(config, is_volatile=True)
    settings.check()
    assert settings.is_volatile
    assert settings.write_cache_bytes == 2 * 1024 * 1024
    assert settings.flush_interval_seconds == 1.5
    assert settings.entry_log_bytes == 1 << 20


def test_an_unknown_setting_is_refused_before_anything_starts() -> None:
    with pytest.raises(ConfigurationError):
        Broker(config={"noSuchSetting": 1})
    with pytest.raises(ConfigurationError, match="not offered"):
        Broker(config={"saslJaasServerRoleTokenSignerSecretPath": "a"})


async def test_a_broker_says_where_it_is_once_it_is_started() -> None:
    broker = Broker()
    for name in ("service_url", "web_service_url", "service"):
        with pytest.raises(RuntimeError, match="the broker is not started"):
            getattr(broker, name)
    async with broker:
        assert broker.service_url.startswith("pulsar://127.0.0.1:")
        assert broker.web_service_url.startswith("http://127.0.0.1:")
        assert broker.service.addresses.default.broker_url == broker.service_url


@pytest.mark.parametrize(
    ("host", "config", "advertised"),
    [
        ("127.0.0.1", {}, "127.0.0.1"),
        ("0.0.0.0", {}, "localhost"),
        ("127.0.0.1", {"advertisedAddress": "broker.example"}, "broker.example"),
    ],
)
async def test_clients_are_told_an_address_they_can_reach(
    host: str, config: dict[str, str], advertised: str
) -> None:
    async with Broker(host=host, config=config) as broker:
        assert broker.service_url.split(":")[1] == f"//{advertised}"


@pytest.mark.parametrize(
    ("host", "is_authenticated", "is_warned"),
    [("0.0.0.0", True, True), ("127.0.0.1", True, False), ("0.0.0.0", False, False)],
)
async def test_clear_text_for_other_machines_brings_a_warning_with_authentication(
    *, host: str, is_authenticated: bool, is_warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    secret = {"tokenSecretKey": "data:;base64,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}
    providers = {"authenticationEnabled": True, "authenticationProviders": "token"} | secret
    async with Broker(host=host, config=providers if is_authenticated else {}) as broker:
        bound = broker.service.addresses.bound_urls
    assert [each.partition(":")[0] for each in bound] == ["pulsar", "http"]
    warned = [each for each in caplog.records if "without TLS" in each.message]
    assert [each.__dict__["ports"] for each in warned] == [", ".join(bound)] * is_warned


async def test_a_directory_that_can_not_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=rf"{tmp_path}/file/data can't be made: not a directory; .*"):
        await Broker(data_dir=tmp_path / "file" / "data").start()


async def test_damaged_data_is_named_with_its_full_path(tmp_path: Path) -> None:
    async with Broker(data_dir=tmp_path):
        pass
    (tmp_path / "ledgers" / "MANIFEST").write_bytes(b"nonsense")
    with pytest.raises(CorruptDataError, match=f"^{tmp_path}/ledgers: MANIFEST.*storage verify"):
        await Broker(data_dir=tmp_path).start()


async def test_a_clean_stop_leaves_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with Broker() as broker:
        await broker.stop()
    assert [each.message for each in caplog.records].count("broker stopped") == 1
    assert caplog.records[-1].message == "broker stopped"


async def test_a_broker_can_be_started_once() -> None:
    async with Broker() as broker:
        with pytest.raises(RuntimeError, match="can be started once"):
            await broker.start()
        await broker.service.check_health()
    with pytest.raises(RuntimeError, match="can be started once"):
        await broker.start()


async def test_stopping_again_is_fine() -> None:
    async with Broker() as broker:
        await broker.stop()
    await broker.stop()


async def test_ten_brokers_in_one_process_do_not_disturb_one_another() -> None:
    brokers = [Broker(config={"clusterName": f"c{number}"}) for number in range(10)]
    await asyncio.gather(*(broker.start() for broker in brokers))
    try:
        assert len({broker.service_url for broker in brokers}) == 10
        for number, broker in enumerate(brokers):
            assert await broker.service.resources.clusters.list() == [f"c{number}"]
    finally:
        await asyncio.gather(*(broker.stop() for broker in brokers))


async def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    async with Broker(data_dir=tmp_path):
        with pytest.raises(DirectoryLockedError):
            await Broker(data_dir=tmp_path).start()


async def test_ledgers_whose_metadata_is_gone_are_refused(tmp_path: Path) -> None:
    async with Broker(data_dir=tmp_path) as broker:
        await broker.service.namespaces.ensure_owned(TopicName.parse("t"))
        await broker.service.topics.get_or_load(TopicName.parse("t"), create_if_missing=True)
    (tmp_path / "metadata.sqlite").unlink()
    with pytest.raises(InstanceMismatchError, match=f"{tmp_path}: there are ledgers of instance"):
        await Broker(data_dir=tmp_path).start()


async def test_a_port_that_is_taken_leaves_nothing_behind(tmp_path: Path) -> None:
    async with Broker() as other:
        port = int(other.service_url.rpartition(":")[2])
        words = f"can't listen on 127.0.0.1:{port}: address already in use.*--port"
        with pytest.raises(OSError, match=words):
            await Broker(data_dir=tmp_path, port=port).start()
        web_port = int(other.web_service_url.rpartition(":")[2])
        with pytest.raises(OSError, match=f"127.0.0.1:{web_port}.*--web-port"):
            await Broker(data_dir=tmp_path, web_port=web_port).start()
    async with Broker(data_dir=tmp_path):
        pass


async def test_an_address_of_another_machine_is_named_as_what_has_to_change() -> None:
    with pytest.raises(OSError, match=r"can't listen on 192\.0\.2\.1:0: .*\(host, --host\)$"):
        await Broker(host="192.0.2.1", port=0, web_port=0).start()


async def test_a_cluster_is_there_again_after_a_restart(tmp_path: Path) -> None:
    async with Broker(data_dir=tmp_path) as broker:
        before = await broker.service.resources.tenants.list()
    async with Broker(data_dir=tmp_path) as broker:
        assert await broker.service.resources.tenants.list() == before == ["public", "pulsar"]


async def test_who_may_connect_is_handed_to_the_connections() -> None:
    authenticators = Authenticators(anonymous_role="nobody")
    async with Broker(authenticators=authenticators) as broker:
        assert broker.service.connections.authenticators is authenticators
    async with Broker() as open_to_all:
        assert not open_to_all.service.connections.authenticators.is_enabled


class Initialized:
    """A MetadataStoreFactory: what Apache Pulsar's tool wrote for the cluster `rec`."""

    def __init__(self) -> None:
        self.clients: list[MemoryMetadataStore] = []

    async def __call__(self, clock: Clock) -> MetadataStores:
        recorded = json.loads((RECORDINGS / "initialized_cluster.json").read_text())["values"]
        store = MemoryMetadataStore(clock)
        for path, value in recorded.items():
            text = value if isinstance(value, str) else json.dumps(value)
            if text:
                await store.put(path, text.encode())
        self.clients.append(store)
        return MetadataStores(local=store, configuration=store)


async def test_a_broker_of_a_cluster_serves_what_apaches_tool_wrote_and_leaves_it_alone() -> None:
    factory = Initialized()
    broker = Broker(
        config={"clusterName": "rec"}, metadata_store_factory=factory, is_of_cluster=True
    )
    async with broker:
        name = TopicName.parse("persistent://public/default/t")
        await broker.service.namespaces.lookup(name)
        topic = await broker.service.topics.get_or_load(name, create_if_missing=True)
        assert topic.name == name
        assert (
            len((await broker.service.namespaces.bundles_of(name.namespace_name)).boundaries) == 17
        )
        store = factory.clients[0]
        for path in (
            "/admin/clusters/rec",
            "/admin/policies/public",
            "/admin/policies/public/default",
        ):
            found = await store.get(path)
            assert found is not None
            assert found.version == 0
