from __future__ import annotations

from pulsar_py.common.names import TopicName
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.server.handlers.held_closes import HeldCloses

NAME, OTHER = (TopicName.parse(f"persistent://t/n/{each}") for each in "ab")


class Connection:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.sent: list[BaseCommand] = []
        self.producers: set[int] = set()
        self.consumers: set[int] = set()

    def uses_producer_id(self, producer_id: int) -> bool:
        return producer_id in self.producers

    def uses_consumer_id(self, consumer_id: int) -> bool:
        return consumer_id in self.consumers

    def send(self, frame: bytes) -> None:
        self.sent.append(BaseCommand.FromString(frame[8:]))


def test_what_is_held_goes_with_the_address_of_the_next_broker() -> None:
    held, cnx = HeldCloses(), Connection()
    with held.holding(NAME.__eq__) as hold:
        held.close_producer(cnx, 1, NAME)
        held.close_consumer(cnx, 2, NAME)
        assert not cnx.sent
        assert hold.end("pulsar://two:6650", None) == 2
        producer, consumer = (each for each in cnx.sent)
        assert producer.close_producer.producer_id == 1
        assert producer.close_producer.assignedBrokerServiceUrl == "pulsar://two:6650"
        assert not producer.close_producer.HasField("assignedBrokerServiceUrlTls")
        assert consumer.close_consumer.consumer_id == 2
        assert consumer.close_consumer.assignedBrokerServiceUrl == "pulsar://two:6650"
    assert len(cnx.sent) == 2
    held.close_producer(cnx, 1, NAME)
    held.close_consumer(cnx, 2, NAME)
    assert len(cnx.sent) == 4


def test_what_is_about_another_topic_or_an_unknown_one_goes_at_once() -> None:
    held, cnx = HeldCloses(), Connection()
    cnx.producers.add(1)  # one that is being created has the id again
    with held.holding(NAME.__eq__) as hold:
        for topic in (OTHER, None):
            held.close_producer(cnx, 1, topic)
            held.close_consumer(cnx, 2, topic)
        assert hold.end() == 0
    sent = [(each.close_producer.producer_id, each.close_consumer.consumer_id) for each in cnx.sent]
    assert sent == [(1, 0), (0, 2)] * 2


def test_what_is_left_at_the_end_goes_without_an_address() -> None:
    held, cnx = HeldCloses(), Connection()
    with held.holding(NAME.__eq__):
        held.close_producer(cnx, 1, NAME)
    assert not cnx.sent[0].close_producer.HasField("assignedBrokerServiceUrl")


def test_an_id_that_the_client_has_reused_is_not_closed() -> None:
    held, cnx = HeldCloses(), Connection()
    with held.holding(NAME.__eq__):
        held.close_producer(cnx, 1, NAME)
        held.close_consumer(cnx, 2, NAME)
        cnx.producers.add(1)
        cnx.consumers.add(2)
    assert not cnx.sent
