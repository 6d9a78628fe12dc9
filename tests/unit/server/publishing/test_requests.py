from __future__ import annotations

from pulsar_py.proto.PulsarApi_pb2 import ProducerAccessMode
from tests.unit.server.topics.rig import Rig


async def test_defaults_are_those_of_the_wire(rig: Rig) -> None:
    request = rig.request(rig.cnx())
    assert request.access_mode == ProducerAccessMode.Shared
    assert request.is_name_user_provided
    assert request.topic_epoch is None
