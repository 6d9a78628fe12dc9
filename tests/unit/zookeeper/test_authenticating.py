from __future__ import annotations

import re
from random import Random

import pytest

from pulsar_py.common.errors import MetadataUnavailableError
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import run_simulated
from pulsar_py.zookeeper import jute, messages
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.client import ZooKeeperClient
from pulsar_py.zookeeper.digest_md5 import DigestMd5Credentials, DigestMd5Exchange
from pulsar_py.zookeeper.messages import ErrorCode, Operation
from pulsar_py.zookeeper.settings import ZooKeeperSettings
from tests.unit.zookeeper.scripted_server import ScriptedServer

CHALLENGE = b'realm="r",nonce="n",qop="auth",charset=utf-8,algorithm=md5-sess'


class SaslServer(ScriptedServer):
    """Knows one user, and the password that it believes to be the user's."""

    def __init__(self, password: str) -> None:
        super().__init__(self.answer)
        self.password = password

    def answer(self, operation: Operation, record: jute.RecordReader) -> tuple[int, bytes]:
        if operation is not Operation.SASL:
            return 0, b""
        token = record.buffer()
        if not token:
            return 0, jute.buffer(CHALLENGE)
        nonce = re.search(rb'cnonce="(\w+)"', token)
        assert nonce is not None
        expected = DigestMd5Exchange(
            DigestMd5Credentials(username="u", password=self.password), nonce[1].decode()
        )
        if expected.answer(CHALLENGE) != token:
            return ErrorCode.AUTH_FAILED, b""
        return 0, jute.buffer(b"rspauth=" + expected._expected_proof.encode())


def with_client(server: SaslServer, is_believed: bool) -> None:  # noqa: FBT001
    async def work() -> None:
        await server.start()
        settings = ZooKeeperSettings(
            session_timeout_millis=6000,
            operation_timeout_seconds=2.0,
            sasl=DigestMd5Credentials(username="u", password="secret"),
            credentials=(("digest", b"more"),),
        )
        client = ZooKeeperClient(
            ZooKeeperAddress.parse("zk:server"),
            VirtualClock(),
            Random(7),
            settings,
            print,
            random_bytes=bytes,
        )
        client.start()
        request = client.request(Operation.SYNC, messages.sync("/"), is_change=False)
        if is_believed:
            await request
        else:
            with pytest.raises(MetadataUnavailableError, match="refused 'u' by SASL: error -115"):
                await request
        await client.close()
        server.stop()

    run_simulated(work())


def test_each_connection_begins_with_the_proof() -> None:
    server = SaslServer("secret")
    with_client(server, is_believed=True)
    assert server.operations[:4] == [
        Operation.SASL,
        Operation.SASL,
        Operation.AUTH,
        Operation.SYNC,
    ]


def test_who_is_not_believed_sends_nothing_more() -> None:
    server = SaslServer("other")
    with_client(server, is_believed=False)
    assert set(server.operations) == {Operation.SASL}
