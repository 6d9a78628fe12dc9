"""The names under which a cursor's properties refer to the buckets of its delayed index (pure).

    delayed.bucket_<first>_<last>                  ledger id: Apache Pulsar's, with the first and
                                                   last data ledger; such spans never overlap
    pulsar-py.delayed-part_<first>_<last>_<number> ledger id: ours alone
    pulsar-py.delayed-doomed                       ledger ids with commas, about to be deleted

All have the prefix `#pulsar.internal.`. A part is a bucket of a data ledger of which another bucket
has entries, too: Apache Pulsar's name has no room for a second one, so there a ledger with millions
of delayed messages stays in memory. Apache Pulsar passes over names that it does not know, and
reads those messages in the topic again.

Source: ImmutableBucket, BucketDelayedDeliveryTracker in Pulsar's broker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from pulsar_py.managed_ledger.cursors.format import (
    DELAYED_BUCKET_PREFIX,
    DELAYED_DOOMED,
    DELAYED_PART_PREFIX,
    INTERNAL_PREFIX,
)

_BUCKET: Final = re.compile(re.escape(INTERNAL_PREFIX + DELAYED_BUCKET_PREFIX) + r"(\d+)_(\d+)")
_PART: Final = re.compile(re.escape(INTERNAL_PREFIX + DELAYED_PART_PREFIX) + r"(\d+)_(\d+)_(\d+)")


class BucketName(Struct, frozen=True, order=True):
    """A bucket's name, without the prefix of internal properties; ordered by data ledgers."""

    first_ledger_id: int
    last_ledger_id: int
    part_number: int = -1  # -1: Apache Pulsar's form

    def __str__(self) -> str:
        span = f"{self.first_ledger_id}_{self.last_ledger_id}"
        if self.part_number < 0:
            return DELAYED_BUCKET_PREFIX + span
        return f"{DELAYED_PART_PREFIX}{span}_{self.part_number}"

    @property
    def key(self) -> str:
        """The whole name of the property, which is a label of the bucket's ledger, too."""
        return f"{INTERNAL_PREFIX}{self}"


def stored_buckets(cursor_properties: Mapping[str, str]) -> dict[BucketName, int]:
    """The buckets that a cursor's properties name, with their ledgers, in order."""
    found = {}
    for key, value in cursor_properties.items():
        name = _name_of(key)
        if name is not None and value.isdecimal():
            found[name] = int(value)
    return dict(sorted(found.items()))


def _name_of(key: str) -> BucketName | None:
    if match := _BUCKET.fullmatch(key):
        return BucketName(int(match[1]), int(match[2]))
    if match := _PART.fullmatch(key):
        return BucketName(int(match[1]), int(match[2]), int(match[3]))
    return None


def doomed_ledgers(cursor_properties: Mapping[str, str]) -> list[int]:
    """Ledgers of former buckets that were about to be deleted."""
    text = cursor_properties.get(INTERNAL_PREFIX + DELAYED_DOOMED, "")
    return [int(each) for each in text.split(",") if each.isdecimal()]


def free_name(first_ledger_id: int, last_ledger_id: int, taken: Iterable[BucketName]) -> BucketName:
    """A name for a bucket of these data ledgers beside others: Apache Pulsar's form if it fits."""
    taken = list(taken)
    overlaps = any(
        each.part_number < 0
        and each.first_ledger_id <= last_ledger_id
        and first_ledger_id <= each.last_ledger_id
        for each in taken
    )
    name = BucketName(first_ledger_id, last_ledger_id)
    if not overlaps:
        return name
    numbers = {
        each.part_number
        for each in taken
        if (each.first_ledger_id, each.last_ledger_id) == (first_ledger_id, last_ledger_id)
    }
    number = 0
    while number in numbers:
        number += 1
    return BucketName(first_ledger_id, last_ledger_id, number)
