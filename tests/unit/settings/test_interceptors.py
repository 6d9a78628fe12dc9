"""brokerInterceptors: what a class is told of a producer, a consumer and their connection."""

from __future__ import annotations

import pytest

from pulsar_py.admin.api.all_routes import all_routes
from pulsar_py.admin.app import AdminApp
from pulsar_py.proto.PulsarApi_pb2 import CommandAck, CommandSubscribe, MessageIdData
from pulsar_py.server.subscriptions.consumer import Consumer
from pulsar_py.server.subscriptions.watched_consumer import WatchedConsumer
from pulsar_py.testing.clock import VirtualClock
from tests.dispatch_parts import ack_command
from tests.hook_classes import OnlyAcked, Recording
from tests.unit.server.topics.rig import FakeCnx, Rig, entry, name_of, send, subscribe_request
from tests.unit.settings.parts import broker, connect

RECORDING = "tests.hook_classes.Recording"
FAILING = "tests.hook_classes.Failing"


def recording_of(rig: Rig) -> Recording:
    (made,) = [each for _, each in rig.broker.hooks.interceptors.made if type(each) is Recording]
    return made


async def use(rig: Rig, domain: str = "persistent") -> tuple[FakeCnx, list[str]]:
    """Publish and consume one message; the receipts and messages that came."""
    topic = await rig.topic(name_of("t", domain=domain))
    cnx = rig.cnx()
    consumer = await topic.subscribe(subscribe_request(cnx, "s"))
    consumer.flow(10)
    producer = await rig.producer(topic, rig.cnx())
    send(producer, 0, entry(1))
    await rig.clock.sleep(0.05)
    lines = cnx.take()
    ledger_id = topic.last_message_position().ledger_id if domain == "persistent" else 0
    consumer.acknowledge(ack_command(consumer.consumer_id, ledger_id, 0))
    producer.disconnect()
    consumer.disconnect()
    consumer.close()
    return cnx, lines


@pytest.mark.setting("brokerInterceptors")
async def test_a_class_is_told_what_clients_do(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, brokerInterceptors=(RECORDING,)) as rig:
        await use(rig)
        recording = recording_of(rig)
        assert [name for name, _ in recording.calls] == [
            "consumer_created",
            "producer_created",
            "on_message_publish",
            "message_produced",
            "before_send_message",
            "message_dispatched",
            "message_acked",
            "producer_closed",
            "consumer_closed",
        ]
        ((producer, ledger_id, entry_id),) = recording.named("message_produced")
        assert (producer.topic, producer.name, entry_id) == (str(name_of("t")), "p", 0)
        ((consumer, *position, data),) = recording.named("message_dispatched")
        assert (consumer.subscription, consumer.subscription_type) == ("s", "Exclusive")
        assert position == [ledger_id, entry_id]
        assert bytes(data) == entry(1)
    assert recording.named("close") == [()]


async def test_non_persistent_topics_tell_it_too(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, brokerInterceptors=(RECORDING,)) as rig:
        await use(rig, "non-persistent")
        calls = [name for name, _ in recording_of(rig).calls]
        assert "on_message_publish" in calls
        assert "message_dispatched" in calls
        assert "message_produced" not in calls


async def test_connections_and_commands(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, brokerInterceptors=(RECORDING,)) as rig:
        client = await connect(rig)
        client.cnx.connection_lost(None)
        recording = recording_of(rig)
        ((opened,),) = recording.named("on_connection_created")
        assert opened.address == "/127.0.0.1:50000"
        assert recording.named("on_pulsar_command")[0][0] == "CONNECT"
        ((closed,),) = recording.named("on_connection_closed")
        assert closed.version == "test"


async def acknowledge_group(rig: Rig) -> CommandAck:
    """Have a client acknowledge twenty neighbours by one command; returns that."""
    client = await connect(rig)
    await rig.topic(name_of("t"))
    await client.asks(
        CommandSubscribe(
            topic=str(name_of("t")),
            subscription="s",
            subType=CommandSubscribe.Shared,
            consumer_id=1,
            request_id=1,
        )
    )
    ids = [MessageIdData(ledgerId=3, entryId=entry_id) for entry_id in range(20)]
    command = CommandAck(consumer_id=1, ack_type=CommandAck.Individual, message_id=ids)
    client.sends(command)
    return command


async def test_a_group_of_acknowledgements_is_told_as_the_command_that_came(
    virtual_clock: VirtualClock,
) -> None:
    async with broker(virtual_clock, brokerInterceptors=(RECORDING,)) as rig:
        command = await acknowledge_group(rig)
        recording = recording_of(rig)
        assert [name for name, _ in recording.named("on_pulsar_command")][-1] == "ACK"
        ((consumer, acknowledged),) = recording.named("message_acked")
        assert (consumer.subscription, acknowledged) == ("s", command)


async def test_it_is_told_of_a_group_where_nobody_listens_to_commands(
    virtual_clock: VirtualClock,
) -> None:
    async with broker(virtual_clock, brokerInterceptors=("tests.hook_classes.OnlyAcked",)) as rig:
        command = await acknowledge_group(rig)
        assert type(rig.broker.connections.new_connection()).__name__ == "ServerCnx"
        ((_, made),) = rig.broker.hooks.interceptors.made
        assert isinstance(made, OnlyAcked)
        assert made.acknowledged == [command]


async def test_requests_of_the_administration(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, brokerInterceptors=(RECORDING,)) as rig:
        app = AdminApp(all_routes(rig.broker), None, rig.broker.hooks.interceptors)
        await app.handle("GET", "/admin/v2/nowhere?a=b", {}, b"")
        recording = recording_of(rig)
        assert recording.named("on_webservice_request") == [("GET", "/admin/v2/nowhere")]
        assert recording.named("on_webservice_response") == [("GET", "/admin/v2/nowhere", 404)]


async def test_errors_stop_nothing(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, brokerInterceptors=(FAILING,)) as rig:
        _, lines = await use(rig)
        assert [line.split()[0] for line in lines] == ["message"]
        assert rig.broker.hooks.errors.counts == {
            FAILING + ".on_message_publish": 1,
            FAILING + ".consumer_created": 1,
        }


async def test_nobody_listens_nothing_is_in_the_way(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock) as rig:
        topic = await rig.persistent()
        assert topic.append_function() == topic.ledger.append
        assert topic.ledger.listener is topic
        consumer = await topic.subscribe(subscribe_request(rig.cnx(), "s"))
        assert type(consumer) is Consumer
        assert type(rig.broker.connections.new_connection()).__name__ == "ServerCnx"
    async with broker(virtual_clock, brokerInterceptors=(FAILING,)) as rig:
        topic = await rig.persistent()
        assert topic.ledger.listener is topic, "nobody listens to what was stored"
        consumer = await topic.subscribe(subscribe_request(rig.cnx(), "s"))
        assert type(consumer) is WatchedConsumer
