"""`Role`: a ledger's kind of content, found by its labels, and the options to store it with (pure).

Brokers open the ledgers of topics, of cursors and of sequence ids with the password of their
settings, all others without one; compacted ledgers have the digest CRC32 and buckets of delayed
messages CRC32C, whatever the settings say. A ledger without labels, which brokers before Apache
Pulsar 2.8 made, is one of a topic or a cursor.

Source: BookkeeperSchemaStorage, TwoPhaseCompactor, BookkeeperBucketSnapshotStorage in Pulsar.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from msgspec.structs import replace

from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import DigestType, LedgerOptions


class Role(Enum):
    """What a ledger holds."""

    DATA = "topics"
    CURSOR = "cursors"
    SCHEMA = "schemas"
    COMPACTED = "compacted topics"
    DELAYED = "delayed messages"
    SEQUENCE_IDS = "sequence ids"
    UNLABELLED = "no labels"


_COMPONENTS: Final = {
    labels.MANAGED_LEDGER: Role.DATA,
    labels.SCHEMA: Role.SCHEMA,
    labels.COMPACTED_LEDGER: Role.COMPACTED,
    labels.DELAYED_INDEX_BUCKET: Role.DELAYED,
    labels.SEQUENCE_IDS: Role.SEQUENCE_IDS,
}
_DIGESTS: Final = {Role.COMPACTED: DigestType.CRC32, Role.DELAYED: DigestType.CRC32C}
_WITHOUT_PASSWORD: Final = {Role.SCHEMA, Role.COMPACTED, Role.DELAYED}


def role_of(custom_metadata: Mapping[str, bytes]) -> Role:
    """What a ledger with these labels holds."""
    component = custom_metadata.get(labels.COMPONENT, b"").decode(errors="replace")
    role = _COMPONENTS.get(component, Role.UNLABELLED)
    if role is Role.DATA and labels.CURSOR in custom_metadata:
        return Role.CURSOR
    return role


def cursor_of(custom_metadata: Mapping[str, bytes]) -> str:
    """The name of the cursor that a cursor ledger belongs to, as in its path; empty for others."""
    return custom_metadata.get(labels.CURSOR, b"").decode(errors="replace")


def password_of(role: Role, settings: LedgerOptions) -> bytes:
    """The password by which brokers with these settings open such a ledger."""
    return b"" if role in _WITHOUT_PASSWORD else settings.password


def options_of(
    role: Role, settings: LedgerOptions, custom_metadata: Mapping[str, bytes]
) -> LedgerOptions:
    """The options of a new ledger of that role, with brokers of these settings."""
    return replace(
        settings,
        digest_type=_DIGESTS.get(role, settings.digest_type),
        password=password_of(role, settings),
        custom_metadata=dict(custom_metadata),
    )
