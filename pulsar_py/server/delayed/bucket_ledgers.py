"""`BucketLedgers`: the ledgers of a subscription's buckets: written once, read, deleted (edge).

A ledger is created, filled and closed; only then its name goes into the cursor's properties. One
that could not be finished is deleted again, as far as the store can be reached.

Source: BookkeeperBucketSnapshotStorage in Pulsar's broker.
"""

from __future__ import annotations

import logging
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from pulsar_py.common.errors import CorruptDataError, MetadataError, StorageError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import DigestType, LedgerOptions, LedgerReader, LedgerStore
from pulsar_py.managed_ledger.log.whole_ledger import BESIDE_OTHERS_BYTES, WholeLedgerWriter
from pulsar_py.server.delayed.bucket_format import NewBucket, decode_segment
from pulsar_py.server.delayed.bucket_names import BucketName

logger = logging.getLogger(__name__)

_ONE: Final = 1 << 30
METADATA_SHARE: Final = 0.9
"""The share of the largest entry that entry 0 of a bucket may take."""


class BucketPlace(Struct, frozen=True):
    """The topic and subscription of buckets, for the labels of their ledgers."""

    cluster: str
    topic: str
    subscription: str


class BucketLedgers:
    """Where one subscription's buckets are. Owned by its `DelayedIndex`."""

    def __init__(
        self, ledger_store: LedgerStore, clock: Clock, options: LedgerOptions, place: BucketPlace
    ) -> None:
        """`options` are those of the topic's ledgers: quorums and placement are the same."""
        self._ledger_store = ledger_store
        self._clock = clock
        self._options = options
        self._place = place

    @property
    def max_metadata_bytes(self) -> int:
        """The largest entry 0 that the store takes, with some room."""
        return int(self._ledger_store.limits.max_entry_bytes * METADATA_SHARE)

    async def write(self, name: BucketName, bucket: NewBucket) -> int:
        """Write a bucket into a ledger of its own; returns the ledger's id.

        Raises:
            StorageError, MetadataError: There is none; what was begun is deleted if possible.
        """
        place = self._place
        own = labels.delayed_index_bucket(place.cluster, place.topic, place.subscription, name.key)
        writer = WholeLedgerWriter(
            self._ledger_store, self._clock, max_unconfirmed_bytes=BESIDE_OTHERS_BYTES
        )
        ledger_id = await writer.create_with(
            replace(
                self._options,
                digest_type=DigestType.CRC32C,
                password=b"",
                custom_metadata={**self._options.custom_metadata, **own},
            )
        )
        try:
            await writer.append(bucket.metadata)
            for segment in bucket.segments:
                await writer.append(segment)
            await writer.close()
        except (StorageError, MetadataError):
            await self.try_delete(ledger_id)
            raise
        return ledger_id

    async def open(self, ledger_id: int) -> LedgerReader:
        """A bucket's ledger, to be closed by the caller.

        Raises:
            LedgerNotFoundError: It is gone.
            StorageError: It can't be opened now.
        """
        return await self._ledger_store.open(ledger_id)

    async def read_metadata(self, ledger_id: int) -> bytes:
        """Entry 0 of a bucket.

        Raises:
            LedgerNotFoundError: The bucket is gone.
            CorruptDataError: It has no entry.
            StorageError: It can't be read now.
        """
        reader = await self.open(ledger_id)
        try:
            if reader.last_add_confirmed < 0:
                raise CorruptDataError(f"ledger {ledger_id}: a bucket without entries")
            (data,) = await reader.read(0, 0, _ONE)
            return bytes(data)
        finally:
            await reader.close()

    async def read_segment(self, ledger_id: int, number: int) -> list[int]:
        """The indexes of a bucket's segment, the first of which has the number 0.

        Raises:
            As `read_metadata`; CorruptDataError also for one that is malformed.
        """
        reader = await self.open(ledger_id)
        try:
            (data,) = await reader.read(number + 1, number + 1, _ONE)
            return decode_segment(bytes(data))
        finally:
            await reader.close()

    async def delete(self, ledger_id: int) -> None:
        """Delete a bucket's ledger; fine if it is gone.

        Raises:
            StorageError, MetadataError: It may still be there.
        """
        await self._ledger_store.delete(ledger_id)

    async def try_delete(self, ledger_id: int) -> bool:
        """Delete a ledger; False, and a line in the log, if it may still be there."""
        try:
            await self._ledger_store.delete(ledger_id)
        except (StorageError, MetadataError) as error:
            logger.warning(
                "bucket of delayed messages left over",
                extra={
                    "topic": self._place.topic,
                    "subscription": self._place.subscription,
                    "ledger_id": ledger_id,
                    "error": str(error),
                },
            )
            return False
        return True
