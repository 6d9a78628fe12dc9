"""The client within the process: own addresses without a socket, others by one or not at all."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pulsar_py.client.brokers.service_url import BrokerAddress
from pulsar_py.common.errors import ConnectError
from pulsar_py.common.linear_patterns import linear_pattern
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.network.tls import TlsOptions
from pulsar_py.server.security.authorization import Caller
from pulsar_py.standalone import Broker
from pulsar_py.websocket.broker_client import OwnBroker, broker_client
from tests.certificates import Authority


def own(broker: Broker, *, reaches_others: bool = False) -> OwnBroker:
    address = broker.service_url.partition("://")[2]
    return OwnBroker(
        service_url=broker.service_url, addresses={address}, reaches_others=reaches_others
    )


async def test_it_is_connected_within_the_process_and_has_the_callers_address() -> None:
    async with Broker() as broker:
        connections = broker.service.connections
        client = broker_client(
            own(broker),
            lambda: connections.new_connection_for(Caller("me")),
            clock=SystemClock(),
            peername=("192.0.2.7", 9),
        )
        async with client, await client.create_producer("t") as producer:
            await producer.send(b"x")
            assert [each.file_number for each in client.context.pool.connections] == [-1]
            (cnx,) = connections._open
            assert (cnx.role, cnx.remote_address) == ("me", "/192.0.2.7:9")
        await asyncio.sleep(0)


async def test_a_callers_pattern_does_not_hold_up_the_broker() -> None:
    name = "a" * 26 + "b"  # with Python's own patterns: minutes
    async with Broker() as broker:
        client = broker_client(
            own(broker),
            broker.service.connections.new_connection,
            clock=SystemClock(),
            peername=None,
        )
        assert client.context.pattern_compiler is linear_pattern
        async with client, await client.create_producer(name) as producer:
            consumer = await client.subscribe(re.compile("public/default/((a+)+c|a+b)"), "s")
            await producer.send(b"x")
            assert (await consumer.receive(20_000)).data() == b"x"


async def test_another_brokers_topic_is_reached_where_no_credentials_are_needed() -> None:
    async with Broker() as broker, Broker() as other:
        for reaches_others in (True, False):
            client = broker_client(
                own(broker, reaches_others=reaches_others),
                broker.service.connections.new_connection,
                clock=SystemClock(),
                peername=None,
            )
            async with client:
                place = other.service_url.partition("://")[2]
                address = BrokerAddress(place, place)
                if reaches_others:
                    cnx = await client.context.pool.get(address)
                    assert cnx.file_number >= 0
                else:
                    with pytest.raises(ConnectError, match="connect with that broker"):
                        await client.context.pool.get(address)


async def test_a_broker_with_tls_alone_is_reached_by_the_authorities_of_the_settings(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("broker")
    config = {
        "brokerServicePortTls": 0,
        "tlsCertificateFilePath": certificate,
        "tlsKeyFilePath": key,
    }
    async with Broker() as broker, Broker(config=config, port=None) as other:
        place = other.service_url.partition("://")[2]
        for options, is_trusted in (
            (TlsOptions(tls_trust_certs_file_path=authority.path), True),
            (TlsOptions(tls_trust_certs_file_path=certificate), False),
        ):
            reaching = replace(own(broker, reaches_others=True), tls=options)
            client = broker_client(
                reaching,
                broker.service.connections.new_connection,
                clock=SystemClock(),
                peername=None,
            )
            async with client:
                address = BrokerAddress(place, place, is_tls=True)
                if is_trusted:
                    assert (await client.context.pool.get(address)).is_connected
                else:
                    with pytest.raises(ConnectError, match="certificate"):
                        await client.context.pool.get(address)
