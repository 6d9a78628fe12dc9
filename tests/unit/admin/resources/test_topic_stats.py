"""Statistics of topics and partitions, with ledgers and cursors."""

from __future__ import annotations

import json

from tests.unit.admin.resources.conftest import Admin, published

P = "/admin/v2/persistent/public/default"
NP = "/admin/v2/non-persistent/public/default"
EXISTS = (409, "This topic already exists")


async def test_statistics_count_what_is_stored(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    await published(admin, "a", 2)
    assert (await admin.get(P + "/a/stats"))["storageSize"] == 10
    internal = await admin.get(P + "/a/internalStats")
    assert internal["numberOfEntries"] == 2
    assert internal["lastConfirmedEntry"].endswith(":1")
    assert internal["schemaLedgers"] == []
    for fields in ([], [{"name": "a", "type": ["null", "int"], "default": None}]):
        record = {"type": "record", "name": "R", "fields": fields}
        schema = {"type": "AVRO", "schema": json.dumps(record), "properties": {}}
        await admin.call("POST", "/admin/v2/schemas/public/default/a/schema", schema)
    ledgers = (await admin.get(P + "/a/internalStats"))["schemaLedgers"]
    assert [each["entries"] for each in ledgers] == [1, 1]
    assert len({each["ledgerId"] for each in ledgers}) == 2
    assert ledgers[1]["size"] > ledgers[0]["size"] > 0
    assert (await admin.reason("GET", P + "/nowhere/stats"))[0] == 404


async def test_statistics_of_partitions_are_added_up(admin: Admin) -> None:
    await admin.call("PUT", P + "/p/partitions", 2)
    for index in range(2):
        await published(admin, f"p-partition-{index}", index + 1)
    stats = await admin.get(P + "/p/partitioned-stats")
    assert stats["storageSize"] == 15
    assert len(stats["partitions"]) == 2
    assert stats["metadata"]["partitions"] == 2
    assert (await admin.get(P + "/p/partitioned-stats?perPartition=false"))["partitions"] == {}
    assert len((await admin.get(P + "/p/partitioned-internalStats"))["partitions"]) == 2
    assert (await admin.reason("GET", P + "/p/stats"))[0] == 404
    assert (await admin.reason("GET", P + "/nowhere/partitioned-stats"))[0] == 404


async def test_topics_in_memory_have_statistics_too(admin: Admin) -> None:
    await admin.call("PUT", NP + "/q")
    assert (await admin.get(NP + "/q/stats"))["storageSize"] == 0
    assert (await admin.get(NP + "/q/internalStats"))["numberOfEntries"] == 0
    assert (await admin.reason("GET", NP + "/q/lastMessageId"))[0] == 405
    assert await admin.status("DELETE", NP + "/nowhere") == 204


async def test_ledgers_are_described_on_request(admin: Admin) -> None:
    path = "/admin/v2/persistent/public/default/a"
    await admin.call("PUT", path)
    (plain,) = (await admin.get(path + "/internalStats"))["ledgers"]
    assert "metadata" not in plain
    (described,) = (await admin.get(path + "/internalStats?metadata=true"))["ledgers"]
    assert described["metadata"].startswith("LedgerMetadata{state=OPEN")
    assert "public/default/persistent/a" in described["metadata"]
