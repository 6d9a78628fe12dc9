"""Legal commands, handshake and keep-alive."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import LocalProtocolError, RemoteProtocolError
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandConnect, FeatureFlags
from pulsar_py.wire.connection_state import (
    FROM_BROKER,
    FROM_CLIENT,
    ConnectionState,
    Handshake,
    KeepAlive,
    KeepAliveDecision,
    Side,
    State,
    broker_feature_flags,
)

C = BaseCommand
HANDSHAKE = {C.CONNECT, C.CONNECTED, C.AUTH_RESPONSE, C.PING, C.PONG}


def connected(side: Side) -> ConnectionState:
    state = ConnectionState(side)
    state.on_connect()
    state.on_connected()
    return state


def test_the_table_names_every_command() -> None:
    missing = set(BaseCommand.Type.values()) - FROM_CLIENT - FROM_BROKER - HANDSHAKE
    assert not missing, [BaseCommand.Type.Name(each) for each in missing]
    assert {C.CLOSE_PRODUCER, C.CLOSE_CONSUMER} == FROM_CLIENT & FROM_BROKER
    assert not HANDSHAKE & (FROM_CLIENT | FROM_BROKER)


@pytest.mark.parametrize("command", [C.PING, C.PONG, C.CONNECT])
def test_before_the_handshake_a_broker_takes(command: BaseCommand.Type.ValueType) -> None:
    ConnectionState(Side.BROKER).check(command)


@pytest.mark.parametrize(
    "command", sorted(FROM_CLIENT | {C.AUTH_RESPONSE}), ids=BaseCommand.Type.Name
)
def test_before_the_handshake_a_broker_refuses(command: BaseCommand.Type.ValueType) -> None:
    with pytest.raises(RemoteProtocolError, match="is not expected while start"):
        ConnectionState(Side.BROKER).check(command)


@pytest.mark.parametrize("command", sorted(FROM_CLIENT), ids=BaseCommand.Type.Name)
def test_a_connected_broker_takes_what_clients_send(command: BaseCommand.Type.ValueType) -> None:
    connected(Side.BROKER).check(command)


@pytest.mark.parametrize(
    "command",
    sorted((FROM_BROKER | {C.CONNECT, C.CONNECTED, C.AUTH_RESPONSE}) - FROM_CLIENT),
    ids=BaseCommand.Type.Name,
)
def test_a_connected_broker_refuses_the_rest(command: BaseCommand.Type.ValueType) -> None:
    with pytest.raises(RemoteProtocolError, match="is not expected while connected"):
        connected(Side.BROKER).check(command)


@pytest.mark.parametrize("command", sorted(FROM_BROKER), ids=BaseCommand.Type.Name)
def test_a_connected_client_takes_what_brokers_send(command: BaseCommand.Type.ValueType) -> None:
    connected(Side.CLIENT).check(command)


def test_a_client_waits_for_the_answer_to_its_connect() -> None:
    state = ConnectionState(Side.CLIENT)
    with pytest.raises(RemoteProtocolError):
        state.check(C.CONNECTED)
    state.on_connect()
    for command in (C.CONNECTED, C.AUTH_CHALLENGE, C.ERROR, C.PING):
        state.check(command)
    with pytest.raises(RemoteProtocolError):
        state.check(C.SUCCESS)


def test_an_auth_response_is_taken_once_for_each_challenge() -> None:
    state = ConnectionState(Side.BROKER)
    state.on_connect()
    state.on_challenge_sent()
    state.check(C.AUTH_RESPONSE)
    state.on_challenge_answered()
    with pytest.raises(RemoteProtocolError):
        state.check(C.AUTH_RESPONSE)
    state.on_connected()
    assert not state.is_challenge_pending

    state.on_challenge_sent()
    assert state.is_challenge_pending
    state.check(C.AUTH_RESPONSE)
    state.check(C.SEND)
    state.on_challenge_answered()
    with pytest.raises(RemoteProtocolError):
        state.check(C.AUTH_RESPONSE)


def test_the_handshake_has_its_order() -> None:
    state = ConnectionState(Side.BROKER)
    with pytest.raises(LocalProtocolError):
        state.on_connected()
    with pytest.raises(LocalProtocolError):
        state.on_challenge_sent()
    state.on_connect()
    assert not state.is_handshake_done
    with pytest.raises(LocalProtocolError):
        state.on_connect()
    state.on_connected()
    assert state.is_connected
    assert state.is_handshake_done


def test_clients_do_not_challenge() -> None:
    with pytest.raises(LocalProtocolError):
        connected(Side.CLIENT).on_challenge_sent()


def test_a_closed_connection_takes_nothing() -> None:
    state = connected(Side.BROKER)
    state.on_closed()

    assert state.state is State.CLOSED
    assert not state.is_connected
    with pytest.raises(RemoteProtocolError):
        state.check(C.PING)


@pytest.mark.parametrize(
    ("version", "flag", "supported"), [(18, True, True), (17, True, False), (21, False, False)]
)
def test_broker_entry_metadata_needs_version_and_flag(
    version: int, *, flag: bool, supported: bool
) -> None:
    handshake = Handshake.from_connect(
        CommandConnect(
            client_version="x",
            protocol_version=version,
            feature_flags=FeatureFlags(supports_broker_entry_metadata=flag),
        )
    )

    assert handshake.supports_broker_entry_metadata is supported


def test_a_connect_without_version_and_flags_is_version_0() -> None:
    handshake = Handshake.from_connect(CommandConnect(client_version=""))

    assert handshake.protocol_version == handshake.client_protocol_version == 0
    assert not handshake.supports_auth_refresh
    assert not handshake.supports_partial_producer


def test_the_broker_announces_what_pulsar_4_2_does() -> None:
    flags = broker_feature_flags(is_topic_list_watcher_enabled=True)

    assert {field.name for field, _ in flags.ListFields()} == {
        "supports_topic_watchers",
        "supports_get_partitioned_metadata_without_auto_creation",
        "supports_repl_dedup_by_lid_and_eid",
        "supports_topic_watcher_reconcile",
    }
    quiet = broker_feature_flags(is_topic_list_watcher_enabled=False)
    assert not quiet.HasField("supports_topic_watchers")


def test_keep_alive_pings_and_gives_up_when_nothing_comes() -> None:
    keep_alive = KeepAlive(now=0.0, interval_seconds=2)

    def tick(now: float) -> KeepAliveDecision:
        return keep_alive.tick(now, is_handshake_done=True, peer_version=21)

    assert keep_alive.due_at == 2
    assert tick(1.9) is KeepAliveDecision.NOTHING
    assert tick(2.0) is KeepAliveDecision.SEND_PING
    assert tick(3.0) is KeepAliveDecision.NOTHING
    decision = tick(4.0)
    assert decision is KeepAliveDecision.CLOSE_NO_ANSWER
    assert decision.is_close


def test_anything_received_keeps_a_connection() -> None:
    keep_alive = KeepAlive(now=0.0, interval_seconds=2)
    for now in (2.0, 4.0, 6.0):
        decision = keep_alive.tick(now, is_handshake_done=True, peer_version=21)
        assert decision is KeepAliveDecision.SEND_PING
        assert not decision.is_close
        keep_alive.is_waiting = False


def test_a_peer_of_version_0_gets_no_ping_and_is_kept() -> None:
    keep_alive = KeepAlive(now=0.0, interval_seconds=2)
    for now in (2.0, 4.0):
        decision = keep_alive.tick(now, is_handshake_done=True, peer_version=0)
        assert decision is KeepAliveDecision.NOTHING


def test_a_handshake_that_is_not_done_by_the_first_tick_ends() -> None:
    decision = KeepAlive(now=0.0).tick(30.0, is_handshake_done=False, peer_version=0)

    assert decision is KeepAliveDecision.CLOSE_HANDSHAKE_TIMEOUT
    assert decision.is_close


def test_a_peer_we_do_not_read_is_not_given_up() -> None:
    keep_alive = KeepAlive(now=0.0, interval_seconds=2)
    for now in (2.0, 4.0, 6.0):
        decision = keep_alive.tick(
            now, is_handshake_done=True, peer_version=21, is_reading_paused=True
        )
        assert decision is KeepAliveDecision.SEND_PING
    last = keep_alive.tick(8.0, is_handshake_done=True, peer_version=21)
    assert last is KeepAliveDecision.CLOSE_NO_ANSWER
