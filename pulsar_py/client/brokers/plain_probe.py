"""`speaks_plain_pulsar`: whether a port answers Pulsar's protocol without TLS (edge).

Asked once where a connection ended in place of what was expected, a TLS handshake or an HTTP
answer: a balancer whose servers are away ends connections, too, so that alone says nothing. What is
sent is CONNECT without credentials.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from pulsar_py.client.brokers.handshake import CLIENT_VERSION
from pulsar_py.common.errors import ProtocolError
from pulsar_py.wire import client_commands
from pulsar_py.wire.framing import FrameDecoder

__all__ = ["speaks_plain_pulsar"]

_LIMIT_SECONDS: Final = 1.0
_MAX_FRAME_BYTES: Final = 4096
"""An answer to CONNECT is shorter, whether it is CONNECTED, ERROR or AUTH_CHALLENGE."""


async def speaks_plain_pulsar(host: str, port: int) -> bool:
    """Whether a frame of Pulsar's protocol comes from there, within a second."""
    with suppress(OSError, TimeoutError, ProtocolError):
        async with asyncio.timeout(_LIMIT_SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(
                    client_commands.connect(CLIENT_VERSION, auth_method_name="", auth_data=None)
                )
                decoder = FrameDecoder(_MAX_FRAME_BYTES)
                while data := await reader.read(_MAX_FRAME_BYTES):
                    if decoder.decode(data):
                        return True
            finally:
                writer.close()
    return False
