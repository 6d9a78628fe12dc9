"""Authenticates each new connection at its ZooKeeper server, by SASL or digest (edge).

SASL comes first, and nothing else is sent before the server has proven itself, too: it may take
nothing of a session that did not authenticate (`sessionRequireClientSASLAuth`). Schemes such as
`digest` are sent behind it, in front of every request; the server hangs up on what it refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pulsar_py.zookeeper import messages
from pulsar_py.zookeeper.connection import ZooKeeperConnection
from pulsar_py.zookeeper.digest_md5 import DigestMd5Exchange, SaslError
from pulsar_py.zookeeper.messages import Operation
from pulsar_py.zookeeper.settings import ZooKeeperSettings

_NONCE_BYTES: Final = 16


async def authenticate(
    connection: ZooKeeperConnection,
    settings: ZooKeeperSettings,
    random_bytes: Callable[[int], bytes],
) -> None:
    """Send all configured credentials; nothing where none are configured.

    Raises:
        SaslError: The server does not believe it, or can't prove that it knows the password.
        ConnectionLostError: It hung up.
    """
    if settings.sasl is not None:
        exchange = DigestMd5Exchange(settings.sasl, random_bytes(_NONCE_BYTES).hex())
        await _by_digest_md5(connection, exchange, settings.sasl.username)
    for scheme, secret in settings.credentials:
        connection.send_unasked(messages.AUTH_XID, Operation.AUTH, messages.auth(scheme, secret))


async def _by_digest_md5(
    connection: ZooKeeperConnection, exchange: DigestMd5Exchange, username: str
) -> None:
    challenge = await _step(connection, b"", username)
    exchange.check(await _step(connection, exchange.answer(challenge), username))


async def _step(connection: ZooKeeperConnection, token: bytes, username: str) -> bytes:
    answer = await connection.send(Operation.SASL, messages.sasl(token))
    if answer.error:
        raise SaslError(f"the server refused {username!r} by SASL: error {answer.error}")
    return answer.record.buffer()
