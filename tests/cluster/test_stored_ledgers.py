"""BookKeeper's own shell reads the ledgers that a broker of ours has written."""

from __future__ import annotations

import asyncio
import base64
import re
from pathlib import Path

import pulsar
import pytest

from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.our_broker import OurBroker
from tests.cluster.takeover_scenarios import SETTINGS, connected

pytestmark = [pytest.mark.slow, pytest.mark.interop]

TOPIC = "persistent://public/default/seen by the shell"
ENCODED = "public/default/persistent/seen+by+the+shell"
COUNT = 25


def ledger_metadata(cluster: BookKeeperCluster, ledger_id: int) -> str:
    logged = cluster.bookies[0].logged_by_shell("ledgermetadata", "-ledgerid", str(ledger_id))
    found = [line for line in logged.splitlines() if "LedgerMetadata{" in line]
    assert len(found) == 1, logged
    return found[0]


def labels(metadata: str) -> dict[str, bytes]:
    """As the shell prints them, with values in base 64."""
    inside = re.search(r"customMetadata=\{(.*?)\}", metadata)
    assert inside, metadata
    pairs = (pair.split("=", 1) for pair in inside[1].split(", "))
    return {name: base64.b64decode(value.removeprefix("base64:")) for name, value in pairs}


async def test_ledgers_and_cursors_are_read_by_bookkeepers_shell(
    bookkeeper: BookKeeperCluster, tmp_path: Path
) -> None:
    broker = OurBroker(tmp_path, bookkeeper.zookeeper.url, settings=SETTINGS)
    await asyncio.to_thread(broker.start)
    try:
        with connected(broker) as client:
            consumer = client.subscribe(TOPIC, "a sub", pulsar.ConsumerType.Shared)
            producer = client.create_producer(TOPIC)
            for number in range(COUNT):
                producer.send(b"number %d" % number)
            for number in range(COUNT):
                message = consumer.receive(20_000)
                if number % 2:
                    consumer.acknowledge(message)
        await asyncio.sleep(1.5)  # the cursor is written within a second
        path = "persistent/public/default/seen%20by%20the%20shell/internalStats"
        internal = broker.get(path)
        first, second = (each["ledgerId"] for each in internal["ledgers"])
        cursor_ledger = internal["cursors"]["a sub"]["cursorLedger"]
        shell = bookkeeper.bookies[0].shell

        closed = await asyncio.to_thread(ledger_metadata, bookkeeper, first)
        assert "state=CLOSED" in closed
        assert "lastEntryId=19" in closed
        assert "ensembleSize=3, writeQuorumSize=3, ackQuorumSize=2" in closed
        assert "digestType=CRC32C" in closed
        shown = labels(closed)
        assert shown["application"] == b"pulsar"
        assert shown["component"] == b"managed-ledger"
        assert shown["pulsar/managed-ledger"] == ENCODED.encode()
        assert "state=OPEN" in await asyncio.to_thread(ledger_metadata, bookkeeper, second)

        of_cursor = labels(await asyncio.to_thread(ledger_metadata, bookkeeper, cursor_ledger))
        assert of_cursor["pulsar/managed-ledger"] == ENCODED.encode()
        assert of_cursor["pulsar/cursor"] == b"a+sub"

        printed = await asyncio.to_thread(shell, "readledger", "-ledgerid", str(first), "-msg")
        for number in range(20):
            assert f"number {number}" in printed
        await asyncio.to_thread(shell, "readledger", "-ledgerid", str(cursor_ledger))
    finally:
        broker.kill()
