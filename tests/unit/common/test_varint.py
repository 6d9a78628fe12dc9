from __future__ import annotations

import pytest

from pulsar_py.common.varint import varint
from pulsar_py.proto.PulsarApi_pb2 import MessageIdData


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 16_383, 16_384, 2**35, 2**63, 2**64 - 1])
def test_it_is_what_protobuf_writes(number: int) -> None:
    data = MessageIdData(ledgerId=number, entryId=0).SerializeToString()
    assert data == b"\x08" + varint(number) + b"\x10\x00"
