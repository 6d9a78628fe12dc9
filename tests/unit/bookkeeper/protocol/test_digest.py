from __future__ import annotations

import pytest

from pulsar_py.bookkeeper.protocol.digest import MAX_DIGEST_BYTES, EntryDigest, master_key
from pulsar_py.ledgers.store import DigestType
from tests.unit.bookkeeper.recorded import ENTRIES, RECORDED


@pytest.mark.parametrize("password", RECORDED["master_keys"])
def test_master_keys_are_those_recorded(password: str) -> None:
    assert master_key(password.encode()).hex() == RECORDED["master_keys"][password]


@pytest.mark.parametrize("each", ENTRIES, ids=str)
def test_digests_are_those_recorded_however_the_payload_is_cut(each: dict[str, str]) -> None:
    digest = EntryDigest(DigestType[each["digest_type"]], each["password"].encode())
    stored, payload = bytes.fromhex(each["stored"]), bytes.fromhex(each["payload"])
    wanted = stored[32 : len(stored) - len(payload)]

    assert digest.size_bytes == len(wanted) <= MAX_DIGEST_BYTES
    assert digest.compute(stored[:32], (payload,)) == wanted
    assert digest.compute(stored[:32], (payload[:2], memoryview(payload)[2:])) == wanted
