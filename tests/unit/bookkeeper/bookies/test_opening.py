from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from pulsar_py.bookkeeper.bookies.opening import (
    TlsRefusedError,
    open_connection,
    refusal_of,
    start_tls_frame,
)
from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.common.network.tls import TlsOptions
from pulsar_py.proto import BookkeeperProtocol_pb2 as pb
from tests.certificates import Certificate


def said(status: int, operation: int = pb.START_TLS) -> bytes:
    header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=operation, txnId=1)  # type: ignore[arg-type]
    answer = pb.Response(header=header, status=status).SerializeToString()  # type: ignore[arg-type]
    return frames.LENGTH.pack(len(answer)) + answer


def test_the_request_is_one_frame_of_protocol_3() -> None:
    frame = start_tls_frame()
    assert frames.LENGTH.unpack_from(frame) == (len(frame) - 4,)
    request = pb.Request.FromString(frame[4:])
    assert request.header.version == pb.VERSION_THREE
    assert request.header.operation == pb.START_TLS
    assert request.HasField("startTLSRequest")


def test_only_agreement_is_agreement() -> None:
    assert not refusal_of(said(pb.EOK)[4:])
    assert "EBADREQ" in refusal_of(said(pb.EBADREQ)[4:])
    assert "does not do TLS" in refusal_of(said(pb.EOK, pb.AUTH)[4:])
    assert "can't be read" in refusal_of(b"\xff\xff")


class Echo(asyncio.Protocol):
    """Both ends: sends back, or keeps, what comes."""

    def __init__(self) -> None:
        self.heard = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if not self.heard.done():
            self.heard.set_result(data)


class Bookie:
    """Answers START_TLS, and sends back one message over TLS."""

    def __init__(self, certificate: Certificate, answer: bytes) -> None:
        self.certificate = certificate
        self.answer = answer
        self.served = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        plain = writer.transport
        try:
            (size_bytes,) = frames.LENGTH.unpack(await reader.readexactly(4))
            await reader.readexactly(size_bytes)
            for part in (self.answer[:3], self.answer[3:]):
                writer.write(part)
                await writer.drain()
            if self.answer == said(pb.EOK):
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(
                    self.certificate.certificate_path, self.certificate.key_path
                )
                await writer.start_tls(context)
                writer.write(await reader.readexactly(5))
                await reader.read()
        except (OSError, asyncio.IncompleteReadError):
            pass
        writer.close()
        if writer.transport is not plain:
            plain.abort()
        self.served.set()

    async def start(self) -> int:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        port: int = self.server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        await self.served.wait()
        self.served.clear()
        await asyncio.sleep(0)
        self.server.close()


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    return Certificate(tmp_path, "bookie", host="localhost")


async def test_what_follows_agreement_is_encrypted(certificate: Certificate) -> None:
    bookie = Bookie(certificate, said(pb.EOK))
    port = await bookie.start()
    tls = TlsOptions(
        tls_trust_certs_file_path=certificate.certificate_path, tls_validate_hostname=True
    )
    connection = await open_connection(Echo, "localhost", port, tls)
    assert connection.transport.get_extra_info("cipher")
    connection.transport.write(b"hello")
    assert await connection.heard == b"hello"
    connection.transport.abort()
    await bookie.stop()


async def test_without_tls_nothing_is_said_first(certificate: Certificate) -> None:
    bookie = Bookie(certificate, said(pb.EBADREQ))
    port = await bookie.start()
    connection = await open_connection(Echo, "127.0.0.1", port, None)
    assert not connection.heard.done()
    assert connection.transport.get_extra_info("cipher") is None
    connection.transport.abort()
    await bookie.stop()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (said(pb.EBADREQ), "answered EBADREQ"),
        (frames.LENGTH.pack(1 << 20), "1048576 bytes"),
        (b"\0\0\0", "hung up"),
    ],
)
async def test_a_bookie_without_tls_is_told_from_one_with_it(
    certificate: Certificate, answer: bytes, reason: str
) -> None:
    bookie = Bookie(certificate, answer)
    port = await bookie.start()
    with pytest.raises(TlsRefusedError, match=reason):
        await open_connection(Echo, "127.0.0.1", port, TlsOptions())
    await bookie.stop()


async def test_a_certificate_that_is_not_trusted_ends_it(certificate: Certificate) -> None:
    bookie = Bookie(certificate, said(pb.EOK))
    port = await bookie.start()
    with pytest.raises(OSError, match="certificate verify failed"):
        await open_connection(Echo, "127.0.0.1", port, TlsOptions())
    with pytest.raises(TlsRefusedError, match="tls_trust_certs_file_path"):
        await open_connection(
            Echo, "127.0.0.1", port, TlsOptions(tls_trust_certs_file_path="/missing.pem")
        )
    await bookie.stop()
