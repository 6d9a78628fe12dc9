"""cluster_stores: which clients a broker gets, and what they are told."""

from __future__ import annotations

from random import Random

import pytest

from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.cluster_stores import (
    BoundedLedgers,
    ClusterAddresses,
    ClusterMetadata,
    ClusterStores,
    ClusterStoreSettings,
    LargestQuorums,
)
from pulsar_py.common.errors import (
    ConfigurationError,
    NotEnoughBookiesError,
    StorageError,
    UnsupportedClusterError,
)
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import run_simulated
from pulsar_py.zookeeper import jute
from pulsar_py.zookeeper.messages import ErrorCode, Operation
from tests.unit.bookkeeper.scripted_cluster import ScriptedCluster, with_cluster
from tests.unit.zookeeper.scripted_server import ScriptedServer


def test_an_address_that_is_not_set_is_that_of_the_clusters_zookeeper() -> None:
    addresses = ClusterAddresses.parse(metadata_url="zk:a:1,b:2/c")
    assert addresses.configuration == addresses.bookkeeper == addresses.local
    assert addresses.ledgers_root == "/ledgers"
    assert str(addresses.local) == "zk:a:1,b:2/c"


def test_each_role_may_have_its_own() -> None:
    addresses = ClusterAddresses.parse(
        metadata_url="a:1/c",
        configuration_url="zk:shared:2",
        bookkeeper_uri="zk+hierarchical://b:3/bk/ledgers",
    )
    assert str(addresses.configuration) == "zk:shared:2"
    assert str(addresses.bookkeeper) == "zk:b:3/bk"


@pytest.mark.parametrize(
    ("urls", "words"),
    [
        ({"metadata_url": ""}, "metadataStoreUrl is not set"),
        (
            {"metadata_url": "etcd:http://a:1"},
            "metadataStoreUrl=etcd:http://a:1: the metadata store etcd is not",
        ),
        ({"metadata_url": "zk:a:x"}, "metadataStoreUrl=zk:a:x: 'a:x' in .* is no HOST:PORT"),
        (
            {"metadata_url": "a", "configuration_url": "oxia://a:1"},
            "configurationMetadataStoreUrl=oxia://a:1: the metadata store oxia is not",
        ),
        (
            {"metadata_url": "a", "bookkeeper_uri": "zk+flat://a:1/ledgers"},
            r"bookkeeperMetadataServiceUri=zk\+flat://a:1/ledgers: the layout 'zk\+flat'",
        ),
    ],
)
def test_what_is_not_served_is_refused_by_the_settings_name(
    urls: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"^{words}"):
        ClusterAddresses.parse(**urls)


def test_one_address_has_one_client_whatever_the_order_of_its_servers() -> None:
    async def work() -> None:
        server = ScriptedServer()
        await server.start()
        stores = settings("zk:server:2181,server:2181", "zk:server:2181,server:2181")
        both = await stores.metadata(VirtualClock())
        assert both.local is both.configuration is await stores.bookkeeper_metadata(VirtualClock())
        other = settings("zk:server:2181/a", "zk:server:2181/b")
        apart = await other.metadata(VirtualClock())
        assert apart.local is not apart.configuration
        await other.close()
        await stores.close()
        server.stop()

    run_simulated(work())


def settings(local: str, configuration: str) -> ClusterStores:
    addresses = ClusterAddresses.parse(metadata_url=local, configuration_url=configuration)
    return ClusterStores(ClusterStoreSettings(addresses=addresses), Random(7))


def test_a_cluster_that_is_not_there_is_refused_and_nothing_is_asked_to_change() -> None:
    def nothing_there(operation: Operation, _record: jute.RecordReader) -> tuple[int, bytes]:
        return (ErrorCode.NO_NODE, b"")

    async def work() -> None:
        server = ScriptedServer(nothing_there)
        await server.start()
        stores = settings("zk:server:2181/chroot", "")
        with pytest.raises(UnsupportedClusterError, match="there is no cluster c"):
            await ClusterMetadata(stores, "c")(VirtualClock())
        reads = {Operation.EXISTS, Operation.GET_DATA, Operation.GET_CHILDREN_2}
        assert set(server.operations) - {Operation.CLOSE_SESSION} <= reads
        server.stop()

    run_simulated(work())


@pytest.mark.parametrize(
    ("sizes", "words"),
    [((6, 2, 2), "an ensemble of 6, at most 5"), ((3, 3, 3), "an ack quorum of 3, at most 2")],
)
async def test_no_ledger_has_more_than_it_may(sizes: tuple[int, int, int], words: str) -> None:
    largest = LargestQuorums(ack_quorum_size=2)
    with pytest.raises(StorageError, match=f"no ledger can have {words}"):
        largest.check(LedgerOptions(*sizes))
    largest.check(LedgerOptions(5, 5, 2))
    assert BoundedLedgers.largest == LargestQuorums()


def test_a_message_of_the_largest_size_fits_a_bookies_frame() -> None:
    addresses = ClusterAddresses.parse(metadata_url="a")
    wide = ClusterStoreSettings(
        addresses=addresses, max_message_bytes=1000, bookkeeper_timeout_seconds=8
    )
    assert wide.bookkeeper.connection.max_frame_bytes == 1000 + 10 * 1024
    assert wide.bookkeeper.limits.max_entry_bytes > 1000
    assert wide.bookkeeper.connection.request_timeout_seconds == 2.0
    assert wide.bookkeeper.limits.answer_timeout_seconds == 8
    assert (
        ClusterStoreSettings(addresses=addresses).bookkeeper.connection.max_frame_bytes == 5253120
    )


def test_a_store_takes_ledgers_while_there_are_bookies_enough() -> None:
    async def test(scripted: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        store = await BoundedLedgers.connect(
            scripted.metadata, scripted.clock, scripted.ids, chance=Random(1)
        )
        await store.check_takes(LedgerOptions(3, 2, 2))
        await scripted.unregister(scripted.bookies[0])
        await store.check_takes(LedgerOptions(3, 2, 2))  # a smaller ensemble will do
        with pytest.raises(NotEnoughBookiesError, match="3 bookies are needed at least, 2 can be"):
            await store.check_takes(LedgerOptions(3, 3, 3))
        assert not any(bookie.asked for bookie in scripted.bookies)
        await store.close()

    with_cluster(test)


@pytest.mark.parametrize(
    ("buffer_mebibytes", "waiting_mebibytes"), [(64, 128), (1, 128), (-1, 128), (512, 1024)]
)
def test_bookies_may_have_more_waiting_than_publishers_before_they_are_paused(
    buffer_mebibytes: int, waiting_mebibytes: int
) -> None:
    addresses = ClusterAddresses.parse(metadata_url="a")
    settings = ClusterStoreSettings(
        addresses=addresses, publish_buffer_bytes=buffer_mebibytes << 20
    ).bookkeeper
    assert settings.connection.max_waiting_bytes == waiting_mebibytes << 20
    assert settings.limits.max_pinned_bytes == 2 * waiting_mebibytes << 20
