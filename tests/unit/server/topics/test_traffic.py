from __future__ import annotations

from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.topics.traffic import TopicTraffic, traffic_of
from tests.unit.server.topics.rig import Rig, entry, send, subscribe_request


async def test_traffic_is_that_of_the_statistics(rig: Rig) -> None:
    topic = await rig.persistent()
    producers = [await rig.producer(topic, rig.cnx(), name=name) for name in ("p", "q")]
    for number, name in enumerate(("a", "a", "b"), start=1):
        cnx = rig.cnx()
        kind = SubscriptionType.SHARED
        consumer = await topic.subscribe(subscribe_request(cnx, name, kind, consumer_id=number))
        consumer.flow(100)
    for number in range(6):
        send(producers[0], number)
    send(producers[1], 0)
    await rig.clock.sleep(0.01)
    topic.roll_rates(2.0)
    found, stats = traffic_of(topic), topic.stats()
    assert found.message_in_rate == stats.message_in_rate == 3.5
    assert found.bytes_in_rate == stats.bytes_in_rate == 3.5 * len(entry(0))
    assert found.message_out_rate == stats.message_out_rate == 7.0
    assert found.bytes_out_rate == stats.bytes_out_rate > 0
    assert (found.producers_count, found.consumers_count) == (2, 3)


async def test_a_topic_without_clients_has_no_traffic(rig: Rig) -> None:
    assert traffic_of(await rig.persistent()) == TopicTraffic()
