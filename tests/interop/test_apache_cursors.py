"""What Apache Pulsar's own classes read in stored cursors, the segments of large ones included.

`recordings/apache_cursors.json` has entries and records as we store them, and what Apache Pulsar
4.2.4 read in them. One test compares what is stored today with the recording; the other reads it
with Apache's classes again, where Java and the jars of the reference are there. After a change of
what is stored: `pytest tests/interop/test_apache_cursors.py --rewrite`.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pulsar_py.common.errors import StorageError
from pulsar_py.managed_ledger.cursors.segments import (
    Marker,
    StoredChanges,
    StoredSegment,
    decode_entry,
)
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from tests.managed_ledger_parts import NAME, World, append_all

READER = Path(__file__).with_name("apache") / "PositionReader.java"
RECORDING = Path(__file__).parent.parent / "recordings" / "apache_cursors.json"
JARS = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "apache-pulsar-4.2.4"
LARGE = {"max_ranges_in_cursor_entry": 4, "max_unacked_ranges_to_persist_in_metadata": 4}


async def stored_cursors() -> list[str]:
    """All that one cursor writes: small, large, of batches, and to the metadata store."""
    world = World()
    ledger = await world.open(max_entries=10, **LARGE)
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST, properties={"a": 1})
    positions = await append_all(ledger, 40)
    lines = []

    async def written(ledger_id: int, first: int) -> int:
        await cursor.flush()
        entries = world.store.ledgers[ledger_id].entries
        lines.extend(f"entry {data.hex()}" for data in entries[first:])
        return len(entries)

    cursor.acknowledge([positions[2], positions[5]], [None, [0b1010]])
    await cursor.flush()
    ledger_id = cursor.cursor_ledger_id
    count = await written(ledger_id, 0)
    cursor.acknowledge(positions[1:40:2])
    count = await written(ledger_id, count)
    cursor.acknowledge([positions[20]])
    await asyncio.sleep(1.1)
    count = await written(ledger_id, count)
    for number in (22, 24, 26):
        cursor.acknowledge([positions[number], positions[32]], [None, [0b11111 << number - 22]])
        cursor.when_durable(lambda numbers, error: None)
        await asyncio.sleep(0.05)
    await asyncio.sleep(1.1)
    await written(ledger_id, count)
    world.store.append_error = world.store.create_error = StorageError("full")
    cursor.acknowledge([positions[36]])
    await cursor.flush()
    record = await world.metadata.get(f"/managed-ledgers/{NAME}/sub")
    assert record is not None
    return [*lines, f"record {record.value.hex()}"]


def read_by_apache(lines: list[str]) -> list[str]:
    """What Apache Pulsar's classes make of them."""
    if shutil.which("java") is None or not (JARS / "complete").exists():
        pytest.skip("needs Java and the jars of Apache Pulsar 4.2.4")
    command = ["java", "-cp", f"{JARS}/*", str(READER)]
    done = subprocess.run(
        command, input="\n".join(lines), check=True, capture_output=True, text=True, timeout=120
    )
    return done.stdout.splitlines()


async def test_what_is_stored_is_what_apache_pulsar_has_read(
    request: pytest.FixtureRequest,
) -> None:
    lines = await stored_cursors()
    if request.config.getoption("--rewrite"):
        pairs = zip(lines, read_by_apache(lines), strict=True)
        content = [{"stored": stored, "read": read} for stored, read in pairs]
        RECORDING.write_text(json.dumps(content, indent=1) + "\n")
    assert lines == [each["stored"] for each in json.loads(RECORDING.read_text())]


def test_apache_pulsar_reads_the_same_again() -> None:
    recording = json.loads(RECORDING.read_text())
    assert read_by_apache([each["stored"] for each in recording]) == [
        each["read"] for each in recording
    ]


def test_it_has_read_a_position_in_every_entry_and_ranges_in_every_marker() -> None:
    kinds = set()
    for each in json.loads(RECORDING.read_text()):
        kind, data = each["stored"].split()
        if kind == "record":
            continue
        decoded = decode_entry(bytes.fromhex(data))
        kinds.add(type(decoded))
        assert each["read"].startswith("3:")
        assert "a=1" in each["read"]
        has_ranges = "ranges [] words []" not in each["read"]
        if isinstance(decoded, StoredChanges):
            continue
        assert has_ranges == (not isinstance(decoded, StoredSegment))
    assert kinds >= {StoredSegment, StoredChanges, Marker}
