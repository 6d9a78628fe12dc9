from __future__ import annotations

from tests.unit.server.topics.rig import Rig, send


async def test_a_snapshot_of_a_producer_does_not_change_any_more(rig: Rig) -> None:
    topic = await rig.persistent()
    producer = await rig.producer(topic, rig.cnx())
    before = producer.stats()
    send(producer, 0)
    assert before.messages_in_count == 0
    assert producer.stats().messages_in_count == 1
