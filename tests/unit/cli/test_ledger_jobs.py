"""ledger_jobs: what is printed of ledgers, which stay as they are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from pulsar_py.bookkeeper.metadata.ledger_metadata import LedgerStatus
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.cli.ledger_jobs import find_orphans, info, list_all, read
from pulsar_py.cli.places import ClusterClients
from pulsar_py.common.errors import LedgerNotFoundError
from pulsar_py.ledgers import labels
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.proto.MLDataFormats_pb2 import ManagedLedgerInfo
from tests.unit.bookkeeper.scripted_cluster import THREE, ScriptedCluster, filled, with_cluster

NAME = "public/default/persistent/t"


def looking(
    test: Callable[[ScriptedCluster, BookKeeperLedgerStore, ClusterClients], Awaitable[None]],
) -> None:
    async def work(scripted: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        metadata = scripted.metadata
        cluster = ClusterClients(
            MetadataStores(metadata, metadata),
            metadata,
            "/ledgers",
            scripted.clock,
            scripted.connect,
        )
        await test(scripted, store, cluster)

    with_cluster(work)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_all_ledgers_with_their_owners(capsys: pytest.CaptureFixture[str]) -> None:
    async def test(
        scripted: ScriptedCluster, store: BookKeeperLedgerStore, cluster: ClusterClients
    ) -> None:
        data = replace(THREE, custom_metadata=labels.managed_ledger("c", NAME))
        writer, _ = await filled(store, 3, data)
        await filled(store, 1, replace(THREE, custom_metadata=labels.cursor("c", NAME, "s")))
        await filled(store, 1)
        await writer.close()
        assert await list_all(cluster, "json") == 0
        shown = [(row["state"], row["lastEntry"], row["owner"]) for row in lines(capsys)]
        assert shown == [("CLOSED", 2, NAME), ("OPEN", None, f"{NAME}/s"), ("OPEN", None, None)]
        await list_all(cluster, "table")
        assert capsys.readouterr().out.startswith("LEDGER  STATE   LAST_ENTRY  BYTES")

    looking(test)


def test_an_open_ledger_is_asked_of_its_bookies_and_not_fenced(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def test(
        scripted: ScriptedCluster, store: BookKeeperLedgerStore, cluster: ClusterClients
    ) -> None:
        writer, listener = await filled(store, 4, replace(THREE, password=b"secret"))
        writer.append(b"says how far the others are confirmed")
        await asyncio.sleep(0.1)
        assert await info(cluster, writer.ledger_id, "json") == 0
        (shown,) = lines(capsys)
        assert (shown["state"], shown["lastEntry"], shown["digest"]) == ("OPEN", 3, "CRC32C")
        assert (shown["ensembleSize"], shown["writeQuorum"], shown["ackQuorum"]) == (3, 3, 2)
        ensembles = shown["ensembles"]
        assert isinstance(ensembles, dict)
        assert sorted(ensembles["0"]) == [bookie.bookie_id for bookie in scripted.bookies]
        writer.append(b"more")
        await asyncio.sleep(0.1)
        assert listener.last == 5
        assert (await scripted.record(writer.ledger_id)).status is LedgerStatus.OPEN

    looking(test)


def test_a_ledger_without_bookies_is_shown_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    async def test(
        scripted: ScriptedCluster, store: BookKeeperLedgerStore, cluster: ClusterClients
    ) -> None:
        writer, _ = await filled(store, 1)
        for bookie in scripted.bookies:
            bookie.stop()
        await info(cluster, writer.ledger_id, "json")
        (shown,) = lines(capsys)
        assert shown["lastEntry"] is None
        assert shown["problem"]

    looking(test)


def test_entries_are_read_up_to_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    async def test(
        scripted: ScriptedCluster, store: BookKeeperLedgerStore, cluster: ClusterClients
    ) -> None:
        writer, _ = await filled(store, 4)
        await writer.close()
        await read(cluster, writer.ledger_id, (1, None), 1, "json")
        assert lines(capsys) == [
            {"entry": entry, "bytes": 2 * (entry + 1), "data": f"{ord(str(entry)):x}"}
            for entry in (1, 2, 3)
        ]
        await read(cluster, writer.ledger_id, (3, 99), 0, "json")
        assert lines(capsys) == [{"entry": 3, "bytes": 8, "data": ""}]

    looking(test)


def test_orphans_are_what_nothing_names_and_pulsar_made(capsys: pytest.CaptureFixture[str]) -> None:
    async def test(
        scripted: ScriptedCluster, store: BookKeeperLedgerStore, cluster: ClusterClients
    ) -> None:
        options = replace(THREE, custom_metadata=labels.managed_ledger("c", NAME))
        named, _ = await filled(store, 1, options)
        lost, _ = await filled(store, 1, options)
        await filled(store, 1)  # another program's
        stored = ManagedLedgerInfo()
        stored.ledgerInfo.add(ledgerId=named.ledger_id)
        await scripted.metadata.put(f"/managed-ledgers/{NAME}", stored.SerializeToString())
        assert await find_orphans(cluster, "json") == 0
        assert [(row["ledger"], row["cluster"]) for row in lines(capsys)] == [(lost.ledger_id, "c")]
        assert (await store.info(lost.ledger_id)).ledger_id == lost.ledger_id

    looking(test)


def test_a_ledger_that_is_not_there_is_an_error() -> None:
    async def test(
        scripted: ScriptedCluster, store: BookKeeperLedgerStore, cluster: ClusterClients
    ) -> None:
        with pytest.raises(LedgerNotFoundError, match="ledger 7 does not exist"):
            await info(cluster, 7, "table")

    looking(test)
