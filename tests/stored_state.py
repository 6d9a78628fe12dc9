"""A broker's directory with one of everything that is stored, and what a broker has to make of it.

Written and read with our own client and over REST, in about two seconds.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from pulsar_py import Client, ConsumerType, InitialPosition, MessageId
from pulsar_py.admin_client import AsyncAdminClient
from pulsar_py.common.errors import ClientTimeoutError
from pulsar_py.standalone import Broker

SETTINGS: Final[dict[str, Any]] = {  # Any: a setting has its own type
    "journalMaxSizeMB": 1,
    "managedLedgerMaxEntriesPerLedger": 20,
    "managedLedgerMinLedgerRolloverTimeMinutes": 0,
    "defaultRetentionTimeInMinutes": -1,
    "defaultRetentionSizeInMB": -1,
    "delayedDeliveryMinIndexCountPerBucket": 10,
    "delayedDeliveryMaxNumBuckets": 5,
    "brokerDeduplicationEntriesInterval": 5,
    "brokerDeduplicationSnapshotIntervalSeconds": 1,
}
NAMESPACE: Final = "shop/orders"
BASE: Final = f"persistent://{NAMESPACE}"
COUNT: Final = 50
_NAME_FIELD: Final = '{"name":"name","type":"string"}'
_AGE_FIELD: Final = '{"name":"age","type":["null","int"],"default":null}'
AVRO: Final = (
    f'{{"type":"record","name":"Person","fields":[{_NAME_FIELD}]}}',
    f'{{"type":"record","name":"Person","fields":[{_NAME_FIELD},{_AGE_FIELD}]}}',
)
HOUR_MILLIS: Final = 3_600_000


async def fill(data_dir: Path, killed: Path | None = None) -> None:
    """Leave one of everything, with a broker that is stopped.

    `killed` gets the directory as a broker leaves it that is killed.
    """
    async with (
        Broker(data_dir=data_dir, config=SETTINGS) as broker,
        Client(broker.service_url) as client,
        AsyncAdminClient(broker.web_service_url) as admin,
    ):
        await _policies(admin)
        for part in (_holes, _batches, _partitions, _deduplicated, _delayed, _compacted):
            await part(client, admin)
        await _schemas(admin)
        await admin.send("POST", _path("terminated/terminate"))
        if killed is not None:
            await asyncio.sleep(1.2)  # what was acknowledged is stored by then
            shutil.copytree(data_dir, killed)


def _path(rest: str) -> str:
    return f"/admin/v2/persistent/{NAMESPACE}/{rest}"


async def _policies(admin: AsyncAdminClient) -> None:
    tenant = {"adminRoles": ["boss"], "allowedClusters": ["standalone"]}
    await admin.send("PUT", "/admin/v2/tenants/shop", tenant)
    namespace = f"/admin/v2/namespaces/{NAMESPACE}"
    await admin.send("PUT", namespace, {"replication_clusters": ["standalone"]})
    await admin.send("POST", f"{namespace}/permissions/clerk", ["produce", "consume"])
    await admin.send("POST", f"{namespace}/messageTTL", 86_400)
    rate = {
        "dispatchThrottlingRateInMsg": 100_000,
        "dispatchThrottlingRateInByte": 1 << 30,
        "ratePeriodInSecond": 1,
    }
    await admin.send("POST", f"{namespace}/dispatchRate", rate)
    await admin.send("POST", f"{namespace}/deduplication", body=True)
    await admin.send("PUT", _path("terminated"))
    await admin.send("POST", _path("terminated/maxConsumers"), 7)


async def _published(client: Client, name: str, **options: Any) -> None:  # Any: client's options
    producer = await client.create_producer(f"{BASE}/{name}", **options)
    await asyncio.gather(*(producer.send(b"%d" % number) for number in range(COUNT)))
    await producer.close()


async def _acknowledged(client: Client, name: str, is_acknowledged: Callable[[int], bool]) -> None:
    consumer = await client.subscribe(
        f"{BASE}/{name}", "sub", consumer_type=ConsumerType.Shared,
        initial_position=InitialPosition.Earliest, batch_index_ack_enabled=True,
        ack_receipt_enabled=True, subscription_properties={"why": "because"},
    )  # fmt: skip
    found = [await consumer.receive(10_000) for _ in range(COUNT)]
    await consumer.acknowledge([each for each in found if is_acknowledged(int(each.data()))])
    await consumer.close()


async def _holes(client: Client, admin: AsyncAdminClient) -> None:
    del admin
    await _published(client, "holes", batching_enabled=False)
    await _acknowledged(client, "holes", lambda number: number % 3 == 0)


async def _batches(client: Client, admin: AsyncAdminClient) -> None:
    del admin
    await _published(client, "batches", batching_enabled=True, batching_max_messages=10)
    await _acknowledged(client, "batches", lambda number: number % 2 == 0)


async def _partitions(client: Client, admin: AsyncAdminClient) -> None:
    await admin.send("PUT", _path("parts/partitions"), 3)
    consumer = await client.subscribe(f"{BASE}/parts", "sub")
    await consumer.close()
    await _published(client, "parts", batching_enabled=False)


async def _deduplicated(client: Client, admin: AsyncAdminClient) -> None:
    del admin
    await _published(client, "once", producer_name="writer", batching_enabled=False)


async def _delayed(client: Client, admin: AsyncAdminClient) -> None:
    del admin
    consumer = await client.subscribe(f"{BASE}/delayed", "sub", consumer_type=ConsumerType.Shared)
    producer = await client.create_producer(f"{BASE}/delayed", batching_enabled=False)
    first = 4_000_000_000_000
    await asyncio.gather(
        *(
            producer.send(b"%d" % number, deliver_at=first + number * HOUR_MILLIS)
            for number in range(COUNT)
        )
    )
    await producer.send(b"now")
    assert (await consumer.receive(10_000)).data() == b"now"
    await consumer.close()


async def _compacted(client: Client, admin: AsyncAdminClient) -> None:
    producer = await client.create_producer(f"{BASE}/compacted", batching_enabled=False)
    await asyncio.gather(
        *(
            producer.send(b"%d" % number, partition_key=f"key-{number % 5}")
            for number in range(COUNT)
        )
    )
    await admin.send("PUT", _path("compacted/compaction"))

    async def is_done() -> bool:
        return (await admin.send("GET", _path("compacted/compaction")))["status"] == "SUCCESS"

    await until(is_done)


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Return when it is."""
    async with asyncio.timeout(60):
        while not await is_so():  # noqa: ASYNC110 - it is known by asking
            await asyncio.sleep(0.02)


async def _schemas(admin: AsyncAdminClient) -> None:
    for text in AVRO:
        body = {"type": "AVRO", "schema": text, "properties": {}}
        await admin.send("POST", f"/admin/v2/schemas/{NAMESPACE}/typed/schema", body)


async def check(broker: Broker) -> None:
    """Find all of it at another broker."""
    async with (
        Client(broker.service_url) as client,
        AsyncAdminClient(broker.web_service_url) as admin,
    ):
        left = [number for number in range(COUNT) if number % 3]
        assert await _rest(client, "holes", len(left)) == left
        odd = [number for number in range(COUNT) if number % 2]
        assert await _rest(client, "batches", len(odd)) == odd
        assert sorted(await _rest(client, "parts", COUNT)) == list(range(COUNT))
        await _check_deduplication(client, admin)
        await _check_delayed(client, admin)
        reader = await client.create_reader(
            f"{BASE}/compacted", MessageId.earliest, is_read_compacted=True
        )
        kept = [(await reader.read_next(10_000)).data() for _ in range(5)]
        assert kept == [b"45", b"46", b"47", b"48", b"49"]
        await _check_admin(admin)


async def _rest(client: Client, name: str, count: int) -> list[int]:
    consumer = await client.subscribe(
        f"{BASE}/{name}", "sub", consumer_type=ConsumerType.Shared, batch_index_ack_enabled=True
    )
    found = [int((await consumer.receive(10_000)).data()) for _ in range(count)]
    try:
        more = await consumer.receive(100)
    except ClientTimeoutError:
        await consumer.close()
        return found
    raise AssertionError(f"{name}: {more.data()!r} comes again")


async def _check_deduplication(client: Client, admin: AsyncAdminClient) -> None:
    """What was stored is not stored again, and the next number is."""
    producer = await client.create_producer(f"{BASE}/once", producer_name="writer")
    assert producer.last_sequence_id() == COUNT - 1
    await producer.send(b"again", sequence_id=COUNT - 1)
    await producer.send(b"new", sequence_id=COUNT)
    stats = await admin.send("GET", _path("once/internalStats"))
    assert stats["numberOfEntries"] == COUNT + 1


async def _check_delayed(client: Client, admin: AsyncAdminClient) -> None:
    consumer = await client.subscribe(f"{BASE}/delayed", "sub", consumer_type=ConsumerType.Shared)
    assert (await consumer.receive(10_000)).data() == b"now"

    async def is_known() -> bool:
        stats = await admin.send("GET", _path("delayed/stats"))
        return bool(stats["subscriptions"]["sub"]["msgDelayed"] == COUNT)

    await until(is_known)
    await consumer.close()


async def _check_admin(admin: AsyncAdminClient) -> None:
    for version, text in enumerate(AVRO):
        path = f"/admin/v2/schemas/{NAMESPACE}/typed/schema/{version}"
        assert (await admin.send("GET", path))["data"] == text
    assert (await admin.send("GET", _path("terminated/internalStats")))["state"] == "Terminated"
    assert await admin.send("GET", _path("terminated/maxConsumers")) == 7
    policies = await admin.send("GET", f"/admin/v2/namespaces/{NAMESPACE}")
    assert policies["auth_policies"]["namespace_auth"] == {"clerk": ["produce", "consume"]}
    assert policies["message_ttl_in_seconds"] == 86_400
    stats = await admin.send("GET", _path("holes/stats"))
    assert stats["subscriptions"]["sub"]["subscriptionProperties"] == {"why": "because"}
