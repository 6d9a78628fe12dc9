from __future__ import annotations

from pulsar_py.common.errors import StorageError
from pulsar_py.managed_ledger.cursors.format import DELAYED_DOOMED
from pulsar_py.server.delayed.bucket_format import BucketBuilder, pack
from pulsar_py.server.delayed.bucket_ledgers import BucketLedgers, BucketPlace
from pulsar_py.server.delayed.bucket_names import BucketName
from pulsar_py.server.delayed.bucket_recovery import TRIES, FoundBuckets, find_buckets
from pulsar_py.testing.clock import VirtualClock
from tests.dispatch_parts import Topic


class Place:
    """A topic of eight entries, and buckets of them."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.topic = Topic(clock)

    async def open(self) -> None:
        await self.topic.open()
        self.positions = await self.topic.publish_many(8)
        self.cursor = (await self.topic.subscription()).cursor
        place = BucketPlace("here", "t", "sub")
        options = self.topic.ledger.config.ledger_options
        self.ledgers = BucketLedgers(self.topic.store, self.clock, options, place)

    async def bucket(self, number: int, entries: range, *, seconds: int) -> int:
        """Write and name a bucket; its entries are due a second apart from `seconds` on."""
        builder = BucketBuilder(
            max_segment_indexes=2, max_step_millis=60_000, max_metadata_bytes=1 << 20
        )
        now = self.clock.wall_time_millis()
        for count, each in enumerate(entries):
            builder.add(pack(now + (seconds + count) * 1000, *self.positions[each]))
        (new,) = builder.finish()
        name = BucketName(number, number)
        ledger_id = await self.ledgers.write(name, new)
        await self.cursor.set_internal_property(str(name), str(ledger_id))
        return ledger_id

    async def find(self) -> FoundBuckets:
        return await find_buckets(self.cursor, self.ledgers, self.clock, {})


async def test_what_is_not_acknowledged_is_found(virtual_clock: VirtualClock) -> None:
    place = Place(virtual_clock)
    await place.open()
    await place.bucket(1, range(4), seconds=-2)
    await place.bucket(2, range(4, 8), seconds=100)
    await place.cursor.set_internal_property(DELAYED_DOOMED, "5,6")
    place.cursor.acknowledge([place.positions[0], place.positions[6]])
    found = await place.find()
    assert list(found.held) == [place.positions[each] for each in (1, 2, 3, 4, 5, 7)]
    assert list(found.overdue) == [place.positions[1]], "of the segment that is due as a whole"
    assert [bucket.next_segment for bucket in found.buckets] == [1, 0]
    assert (found.lost, found.doomed) == ([], [5, 6])
    await place.topic.close()


async def test_a_bucket_that_is_gone_is_lost(virtual_clock: VirtualClock) -> None:
    place = Place(virtual_clock)
    await place.open()
    gone = await place.bucket(1, range(4), seconds=100)
    await place.bucket(2, range(4, 8), seconds=100)
    await place.topic.store.delete(gone)
    found = await place.find()
    assert [bucket.ledger_id for bucket in found.lost] == [gone]
    assert list(found.held) == place.positions[4:]
    await place.topic.close()


async def test_a_bucket_that_can_not_be_read_is_passed_over_after_a_while(
    virtual_clock: VirtualClock, monkeypatch
) -> None:
    place = Place(virtual_clock)
    await place.open()
    await place.bucket(1, range(4), seconds=100)
    tries = 0

    async def refuse(ledger_id: int) -> bytes:
        nonlocal tries
        tries += 1
        raise StorageError(f"not now {ledger_id}")

    monkeypatch.setattr(place.ledgers, "read_metadata", refuse)
    found = await place.find()
    assert (tries, found.buckets, found.lost) == (TRIES, [], [])
    assert place.cursor.cursor_properties, "it may be readable later"
    await place.topic.close()
