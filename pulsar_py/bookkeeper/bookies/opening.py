"""Opens connections to bookies, plain or with TLS (edge).

A bookie has one port for both. TLS is asked for by one frame of protocol 3, the only one of this
client: a `Request` START_TLS; the bookie answers it with EOK, and both begin the TLS handshake on
the same connection. What follows is protocol 2, as on a plain connection. A bookie without TLS
answers EBADREQ, and nothing is sent to it.

Source: BookkeeperProtocol.proto, PerChannelBookieClient and BookieRequestProcessor in Apache
BookKeeper.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar, cast

from google.protobuf.message import DecodeError

from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.common.errors import InvalidConfigurationError, StorageError
from pulsar_py.common.failures import OnFailure
from pulsar_py.common.network.tls import TlsOptions, client_ssl_context
from pulsar_py.proto import BookkeeperProtocol_pb2 as pb

_MAX_ANSWER_BYTES: Final = 1024
P = TypeVar("P", bound=asyncio.Protocol)


class TlsRefusedError(StorageError):
    """A bookie does not do TLS, or this client's options can't be used for it."""


async def open_connection(
    make_protocol: Callable[[], P], host: str, port: int, tls: TlsOptions | None
) -> P:
    """A connection on which protocol 2 may begin.

    Raises:
        OSError: It can't be made, or the handshake failed.
        TlsRefusedError: TLS is not to be had.
    """
    loop = asyncio.get_running_loop()
    if tls is None:
        _, connection = await loop.create_connection(make_protocol, host, port)
        return connection
    try:
        context = client_ssl_context(tls)
    except InvalidConfigurationError as error:
        raise TlsRefusedError(str(error)) from error
    plain, asking = await loop.create_connection(_AskForTls, host, port)
    with OnFailure(plain.abort):
        await asking.agreed
        connection = make_protocol()
        encrypted = await loop.start_tls(plain, connection, context, server_hostname=host)
        assert encrypted is not None
        connection.connection_made(encrypted)
    return connection


class _AskForTls(asyncio.Protocol):
    """Sends the request as soon as it is connected, and takes its answer."""

    def __init__(self) -> None:
        self.agreed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the bookie agreed; TlsRefusedError if it did not."""
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(start_tls_frame())  # uvloop's is a class apart

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) < frames.LENGTH.size or self.agreed.done():
            return
        (size_bytes,) = frames.LENGTH.unpack_from(self._buffer)
        if size_bytes > _MAX_ANSWER_BYTES:
            self._end(f"an answer of {size_bytes} bytes to START_TLS")
        elif len(self._buffer) >= frames.LENGTH.size + size_bytes:
            self._end(refusal_of(self._buffer[frames.LENGTH.size :]))

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(f"the bookie hung up on START_TLS: {exc or 'no reason'}")

    def _end(self, refusal: str) -> None:
        if self.agreed.done():
            return
        if refusal:
            self.agreed.set_exception(TlsRefusedError(refusal))
        else:
            self.agreed.set_result(None)


def start_tls_frame() -> bytes:
    """The request for TLS, with its length."""
    header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=pb.START_TLS, txnId=1)
    request = pb.Request(header=header, startTLSRequest=pb.StartTLSRequest()).SerializeToString()
    return frames.LENGTH.pack(len(request)) + request


def refusal_of(frame: bytes) -> str:
    """Why a bookie's answer is no agreement; empty: it agreed."""
    try:
        answer = pb.Response.FromString(frame)
    except DecodeError as error:
        return f"the answer to START_TLS can't be read: {error}"
    if answer.header.operation != pb.START_TLS or answer.status != pb.EOK:
        return f"the bookie does not do TLS: it answered {pb.StatusCode.Name(answer.status)}"
    return ""
