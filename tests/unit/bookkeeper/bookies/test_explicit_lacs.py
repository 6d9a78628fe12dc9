from __future__ import annotations

from pulsar_py.bookkeeper.bookies.connection import ConnectionLimits
from pulsar_py.bookkeeper.bookies.explicit_lacs import ExplicitLacs
from pulsar_py.bookkeeper.protocol.digest import EntryDigest, master_key
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.ledgers.store import DigestType
from tests.unit.bookkeeper.scripted_cluster import ScriptedCluster, with_cluster

DIGEST = EntryDigest(DigestType.CRC32C, b"")
KEY = master_key(b"")
LIMITS = ConnectionLimits(request_timeout_seconds=2.0)


def lacs_of(store: BookKeeperLedgerStore) -> ExplicitLacs:
    return ExplicitLacs(store._registry, LIMITS)


def test_the_highest_that_any_bookie_was_told_counts() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        lacs = lacs_of(store)
        first, second, third = (each.bookie_id for each in cluster.bookies[:3])
        assert await lacs.read([first, second, third], 1, DIGEST) == -1
        assert await lacs.write([first, second], 1, DIGEST, KEY, 4) == 2
        assert await lacs.write([second], 1, DIGEST, KEY, 7) == 1
        assert await lacs.read([first, second, third], 1, DIGEST) == 7
        assert await lacs.read([first, third], 1, DIGEST) == 4
        assert lacs.failures_count == 0
        assert sum(bookie.connects_count for bookie in cluster.bookies) == 3
        lacs.close()

    with_cluster(test)


def test_a_bookie_that_is_away_or_silent_is_done_without() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        lacs = lacs_of(store)
        away, silent, there = cluster.bookies[:3]
        ids = [each.bookie_id for each in (away, silent, there)]
        away.stop()
        silent.is_mute = True
        assert await lacs.write(ids, 1, DIGEST, KEY, 3) == 1
        assert await lacs.read(ids, 1, DIGEST) == 3
        assert lacs.failures_count == 4
        await away.start()
        silent.is_mute = False
        assert await lacs.write(ids, 1, DIGEST, KEY, 3) == 3
        lacs.close()

    with_cluster(test)


def test_what_a_bookie_keeps_damaged_is_not_believed() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        lacs = lacs_of(store)
        ids = [each.bookie_id for each in cluster.bookies[:2]]
        await lacs.write(ids, 1, DIGEST, KEY, 3)
        cluster.bookies[0].explicit_lacs[1] = bytes(20)
        assert await lacs.read(ids, 1, DIGEST) == 3
        assert lacs.failures_count == 1
        lacs.close()

    with_cluster(test)
