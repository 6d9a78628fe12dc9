"""Producers without await: receipts, errors at the call, order, closing."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from pulsar_py import blocking
from pulsar_py.schema import StringSchema


def test_send_returns_the_id_and_keeps_all_options(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s", consumer_type=blocking.ConsumerType.Shared)
    with client.create_producer(topic, producer_name="p") as producer:
        sent = producer.send(b"x", {"a": "b"}, key="k", event_timestamp=7, sequence_id=3)
        producer.send(b"later", deliver_after=timedelta(milliseconds=1))
        message = consumer.receive(30_000)
        assert message.message_id() == sent
        assert (message.partition_key(), message.properties()) == ("k", {"a": "b"})
        assert (message.event_timestamp(), message.sequence_id()) == (7, 3)
        assert producer.last_sequence_id() >= 3
        assert producer.producer_name() == "p"
        assert producer.topic().endswith(topic)
        assert producer.is_connected()
        assert producer.partitions_count() == 0
        assert producer.statistics().total_receipts_received == 2
        assert repr(producer).startswith("blocking.TopicProducer('p' on persistent://")
    assert producer.is_closed
    with pytest.raises(blocking.AlreadyClosedError, match="the producer is closed"):
        producer.send(b"x")


def test_messages_of_one_thread_keep_their_order(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, block_if_queue_full=True, max_pending_messages=100)
    for number in range(3000):
        producer.send_nowait(b"%d" % number)
    producer.flush()
    assert [int(consumer.receive(30_000).data()) for _ in range(3000)] == list(range(3000))


def test_many_threads_send(client: blocking.Client, topic: str) -> None:
    producer = client.create_producer(topic, batching_enabled=True)
    ids = []

    def send() -> None:
        ids.extend(producer.send(b"x") for _ in range(50))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(set(map(str, ids))) == 200


def test_what_does_not_fit_the_schema_is_refused_at_the_call(
    client: blocking.Client, topic: str
) -> None:
    producer = client.create_producer(topic)
    with pytest.raises(blocking.SchemaSerializationError):
        producer.send_nowait("text")
    with pytest.raises(blocking.InvalidConfigurationError, match="only one of them"):
        producer.send_nowait(b"x", partition_key="a", key="b")
    with pytest.raises(blocking.InvalidMessageError):
        producer.send_nowait(b"x", {"a": 1})  # type: ignore[dict-item]


def test_values_are_encoded_when_they_are_handed_over(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s", schema=StringSchema())
    producer = client.create_producer(topic, schema=StringSchema())
    producer.send_nowait("eins")
    assert consumer.receive(30_000).value() == "eins"


def test_interceptors_see_the_value_and_change_it(client: blocking.Client, topic: str) -> None:
    class Marks(blocking.ProducerInterceptor):
        def before_send(self, producer: object, message: blocking.OutgoingMessage) -> object:
            message.set_property("seen", repr(message.value()))
            return message

    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, interceptors=[Marks()])
    producer.send(b"x")
    producer.send_nowait(b"y", key="k")
    assert [consumer.receive(30_000).properties() for _ in range(2)] == [
        {"seen": "b'x'"},
        {"seen": "b'y'"},
    ]


def test_a_partitioned_topic_has_a_partitioned_producer(
    client: blocking.Client, topic: str, session_pulsar_broker: object
) -> None:
    from pulsar_py.admin_client.client import AdminClient  # noqa: PLC0415 - one test needs it

    with AdminClient(session_pulsar_broker.web_service_url) as admin:
        admin.create_partitioned_topic(topic, 3)
    producer = client.create_producer(topic)
    consumer = client.subscribe(topic, "s")
    assert isinstance(producer, blocking.PartitionedProducer)
    assert isinstance(consumer, blocking.MultiTopicsConsumer)
    assert producer.partitions_count() == 3
    for number in range(30):
        producer.send_nowait(b"%d" % number, key=str(number))
    producer.flush()
    got = []
    for _ in range(30):
        message = consumer.receive(30_000)
        got.append(int(message.data()))
        consumer.acknowledge(message)
    assert sorted(got) == list(range(30))
    assert len(consumer.topics()) == 3


def test_drain_sends_everything_and_closes(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=True)
    producer.send_nowait(b"x")
    producer.drain()
    assert producer.is_closed
    assert consumer.receive(30_000).data() == b"x"


def test_the_official_clients_names_say_what_to_use(client: blocking.Client, topic: str) -> None:
    producer = client.create_producer(topic)
    with pytest.raises(AttributeError, match=r"send_nowait.*add_done_callback"):
        producer.send_async  # noqa: B018 - asking for it is what is tested
