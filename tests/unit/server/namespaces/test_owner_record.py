from __future__ import annotations

import json

import pytest

from pulsar_py.server.namespaces.lookup import BrokerAddresses, LocalAddresses
from pulsar_py.server.namespaces.owner_record import OwnerRecord

ADDRESSES = LocalAddresses(
    default=BrokerAddresses(broker_url="pulsar://a:1", http_url="http://a:2"),
    by_listener={"in": BrokerAddresses(broker_url="pulsar://a:3")},
)


@pytest.mark.parametrize("is_disabled", [True, False])
@pytest.mark.parametrize(
    "addresses", [ADDRESSES, LocalAddresses(default=BrokerAddresses(broker_url=None))]
)
def test_a_record_comes_back(
    addresses: LocalAddresses,
    is_disabled: bool,  # noqa: FBT001
) -> None:
    record = OwnerRecord(addresses, is_disabled)
    assert OwnerRecord.decode(record.encode()) == record


def test_apaches_brokers_write_null_for_what_is_absent() -> None:
    value = {"nativeUrl": "pulsar://a:1", "nativeUrlTls": None, "httpUrl": None, "disabled": True}
    found = OwnerRecord.decode(json.dumps(value).encode())
    assert found == OwnerRecord(
        LocalAddresses(default=BrokerAddresses(broker_url="pulsar://a:1")), is_disabled=True
    )


@pytest.mark.parametrize("value", [b"", b"{", b"\xff"])
def test_what_is_no_record_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of json, or of foreign_json
        OwnerRecord.decode(value)
