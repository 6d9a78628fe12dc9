from __future__ import annotations

from pulsar_py.proto.PulsarApi_pb2 import ProducerAccessMode
from pulsar_py.server.publishing.producer_stats import access_mode_of
from tests.unit.server.topics.rig import Rig, send


async def test_a_snapshot_of_a_producer_does_not_change_any_more(rig: Rig) -> None:
    topic = await rig.persistent()
    producer = await rig.producer(topic, rig.cnx())
    before = producer.stats()
    send(producer, 0)
    assert before.messages_in_count == 0
    assert producer.stats().messages_in_count == 1


def test_access_modes_are_known_by_their_names() -> None:
    assert access_mode_of("WaitForExclusive") == ProducerAccessMode.WaitForExclusive
    assert access_mode_of("Newer") == ProducerAccessMode.Shared
