from __future__ import annotations

import pytest

from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import DigestType, LedgerOptions
from pulsar_py.migration.roles import Role, cursor_of, options_of, password_of, role_of

SETTINGS = LedgerOptions(3, 2, 1, digest_type=DigestType.HMAC, password=b"secret")


@pytest.mark.parametrize(
    ("custom_metadata", "role", "password", "digest"),
    [
        (labels.managed_ledger("c", "n"), Role.DATA, b"secret", DigestType.HMAC),
        (labels.cursor("c", "n", "sub"), Role.CURSOR, b"secret", DigestType.HMAC),
        (labels.sequence_ids("c", "n"), Role.SEQUENCE_IDS, b"secret", DigestType.HMAC),
        (labels.schema("c", "n"), Role.SCHEMA, b"", DigestType.HMAC),
        (labels.compacted_ledger("c", "n", b""), Role.COMPACTED, b"", DigestType.CRC32),
        (labels.delayed_index_bucket("c", "n", "s", "k"), Role.DELAYED, b"", DigestType.CRC32C),
        ({}, Role.UNLABELLED, b"secret", DigestType.HMAC),
    ],
)
def test_a_ledger_is_stored_as_brokers_store_one_of_its_role(
    custom_metadata: dict[str, bytes], role: Role, password: bytes, digest: DigestType
) -> None:
    assert role_of(custom_metadata) is role
    assert password_of(role, SETTINGS) == password
    options = options_of(role, SETTINGS, custom_metadata)
    assert options == LedgerOptions(3, 2, 1, digest, password, custom_metadata)


def test_a_cursor_ledger_says_whose_it_is() -> None:
    assert cursor_of(labels.cursor("c", "n", "sub")) == "sub"
    assert cursor_of(labels.managed_ledger("c", "n")) == ""
