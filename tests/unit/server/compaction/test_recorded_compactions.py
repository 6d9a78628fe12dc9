"""What Apache Pulsar wrote into compacted ledgers, and what ours writes of the same messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.proto.PulsarApi_pb2 import CompressionType
from pulsar_py.server.compaction.compactor import CompactionRules
from pulsar_py.server.compaction.record_format import decode_record, encode_compacted_to
from pulsar_py.wire.compression import decompress
from pulsar_py.wire.payload import parse_metadata, split_entry
from tests.unit.server.compaction.parts import as_entries, compacted, decoded

RECORDED = json.loads(Path("tests/recordings/compaction.json").read_text("utf-8"))
LIKE_APACHE = [name for name in RECORDED if "broken1" not in name and "broken2" not in name]


def entries_of(case: dict[str, Any], after: Position, last: Position) -> list[Entry]:
    sent = [
        Entry(*Position.parse(each["position"]), bytes.fromhex(each["entry"]))
        for each in case["sent"]
    ]
    return [entry for entry in sent if after < entry.position <= last]


def rules_of(name: str) -> CompactionRules:
    return CompactionRules(
        retains_null_keys="null-keys-kept" in name,
        keeps_broker_entry_metadata="partition" in name,
    )


def opened(record: bytes) -> object:
    """A record without what depends on a codec's implementation."""
    position, message = decode_record(record)
    parts = split_entry(bytes(message))
    metadata = parts.metadata
    if metadata.compression == CompressionType.NONE or not metadata.compacted_batch_indexes:
        return record
    body = decompress(metadata.compression, parts.payload, metadata.uncompressed_size)
    return position, metadata, bytes(body)


@pytest.mark.parametrize("name", [name for name in LIKE_APACHE if "chunked" not in name])
async def test_records_are_those_of_apache_pulsar(name: str) -> None:
    case = RECORDED[name]
    former: list[Entry] = []
    after = Position(-1, -1)
    partition_index = 1 if name.startswith("partition/") else -1
    rounds = 0
    for each in case["rounds"]:
        if "mark_delete" not in each:
            continue
        last = Position(*each["mark_delete"])
        records, compactor = await compacted(
            former + entries_of(case, after, last), rules_of(name), partition_index=partition_index
        )
        expected = [bytes.fromhex(text) for text in each["entries"]]
        assert [opened(each) for each in records] == [opened(each) for each in expected]
        to = encode_compacted_to(compactor.compacted_to or last, partition_index)
        assert to.hex() == each["compacted_to"]
        former, after = as_entries(expected), last
        rounds += 1
    assert rounds


async def test_chunks_of_a_message_stay_together_or_go() -> None:
    case = RECORDED["null-keys-dropped/chunked"]
    entries = entries_of(case, Position(-1, -1), Position(1 << 40, 0))
    records, _ = await compacted(entries)
    apache = [decode_record(bytes.fromhex(each)) for each in case["rounds"][0]["entries"]]
    ours = decoded(records)
    assert {record.position for record in apache} < {record.position for record in ours}
    chunks: dict[str, list[int]] = {}
    for record in ours:
        metadata = parse_metadata(record.message)
        if metadata.uuid:
            chunks.setdefault(metadata.uuid, []).append(metadata.chunk_id)
    assert chunks
    assert all(ids == list(range(len(ids))) for ids in chunks.values())


@pytest.mark.parametrize("name", ["null-keys-dropped/broken1", "null-keys-dropped/broken2"])
async def test_a_batch_that_cannot_be_opened_is_kept_whole(name: str) -> None:
    """Apache Pulsar's compactions of this topic fail, all of them."""
    entries = entries_of(RECORDED[name], Position(-1, -1), Position(1 << 40, 0))
    records, _ = await compacted(entries)
    assert RECORDED[name]["rounds"][0]["status"] == "ERROR"
    assert [(record.position, record.message) for record in decoded(records)] == [
        (entry.position, entry.data) for entry in entries
    ]
