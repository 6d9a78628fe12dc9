"""`Ports`: the listening sockets of one broker, in clear text and with TLS (edge).

There are up to four: binary protocol and HTTP, each with and without TLS. All are bound before any
of them accepts, so that the addresses are known when the first client comes. While TLS is used, its
files are looked at now and then, and read again when they changed.

Third-party packages it may import: msgspec.

Source: BrokerService.start, WebService of Pulsar's broker.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from pathlib import Path

from msgspec import Struct

from pulsar_py.admin.http_server import HttpServer
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.server.listeners import Listener
from pulsar_py.server.namespaces.lookup import BrokerAddresses
from pulsar_py.server.security.key_source import warn_if_others_can_read
from pulsar_py.server.security.tls import ReloadingContext, TlsSettings

__all__ = ["PortNumbers", "Ports"]


class PortNumbers(Struct, frozen=True, kw_only=True):
    """The ports to listen on: 0 takes a free one, None opens none."""

    binary: int | None
    binary_tls: int | None = None
    http: int | None = None
    http_tls: int | None = None

    @property
    def binary_tls_hint(self) -> str:
        """What changes the binary protocol's port with TLS: `--port`, where there is no other."""
        return "brokerServicePortTls" + (", --port" if self.binary is None else "")

    @property
    def http_tls_hint(self) -> str:
        """What changes the port of HTTPS, likewise."""
        return "webServicePortTls" + (", --web-port" if self.http is None else "")

    def check(self) -> None:
        """Refuse a broker that nobody could reach.

        Raises:
            ConfigurationError: Both ports of the binary protocol, or of HTTP, are missing.
        """
        if self.binary is None and self.binary_tls is None:
            raise ConfigurationError(
                "brokerServicePort and brokerServicePortTls are both empty: set one of them"
            )
        if self.http is None and self.http_tls is None:
            raise ConfigurationError(
                "webServicePort and webServicePortTls are both empty: set one of them"
            )


class Ports:
    """The sockets of one broker, which owns it."""

    def __init__(
        self,
        listener: Listener,
        web: HttpServer,
        *,
        binary_tls: TlsSettings,
        http_tls: TlsSettings,
        reload_seconds: float,
    ) -> None:
        """The settings of TLS count where a port with TLS is opened; 0 never reloads files."""
        self._listener = listener
        self._web = web
        self._tls = {"pulsar+ssl": binary_tls, "https": http_tls}
        self._reload_seconds = reload_seconds
        self._contexts: list[ReloadingContext] = []
        self._tasks = TaskOwner("ports")
        self._urls: dict[str, str] = {}  # by scheme
        self._bound_urls: list[str] = []

    async def bind(self, host: str, numbers: PortNumbers, *, advertised_host: str) -> None:
        """Bind all ports, without accepting yet.

        Raises:
            ConfigurationError: TLS can't be set up, or no port is given.
            OSError: A port can't be bound.
        """
        numbers.check()
        secrets: dict[tuple[str, str], None] = {}  # by setting and path, in order
        for server, scheme, number, hint in (
            (self._listener, "pulsar", numbers.binary, "port, --port"),
            (self._listener, "pulsar+ssl", numbers.binary_tls, numbers.binary_tls_hint),
            (self._web, "http", numbers.http, "web_port, --web-port"),
            (self._web, "https", numbers.http_tls, numbers.http_tls_hint),
        ):
            if number is None:
                continue
            context = None
            if scheme in self._tls:
                context = ReloadingContext(self._tls[scheme])
                self._contexts.append(context)
                secrets[self._tls[scheme].secret] = None
            port = await _bind(server, host, number, context, hint=hint)
            self._urls[scheme] = f"{scheme}://{advertised_host}:{port}"
            self._bound_urls.append(f"{scheme}://{_place(host, port)}")
        for setting, path in secrets:
            warn_if_others_can_read(setting, Path(path))

    @property
    def addresses(self) -> BrokerAddresses:
        """The URLs of the ports that are bound."""
        return BrokerAddresses(
            broker_url=self._urls.get("pulsar"),
            broker_url_tls=self._urls.get("pulsar+ssl"),
            http_url=self._urls.get("http"),
            http_url_tls=self._urls.get("https"),
        )

    @property
    def bound_urls(self) -> tuple[str, ...]:
        """The ports that are bound, with the address that they are bound to."""
        return tuple(self._bound_urls)

    async def serve(self, clock: Clock) -> None:
        """Let clients in; look after the files of TLS."""
        await self._listener.serve()
        await self._web.serve()
        if self._contexts and self._reload_seconds:
            self._tasks.spawn(self._reload_now_and_then(clock), "tls files")

    async def _reload_now_and_then(self, clock: Clock) -> None:
        while True:
            await clock.sleep(self._reload_seconds)
            for context in self._contexts:
                if await asyncio.to_thread(context.reload_if_changed):
                    context.end_untrusted()

    async def close(self) -> None:
        """Stop accepting; connections of the binary protocol stay, those of HTTP are dropped."""
        await self._tasks.close()
        await self._web.close()
        await self._listener.close()


async def _bind(
    server: Listener | HttpServer, host: str, port: int, tls: ssl.SSLContext | None, *, hint: str
) -> int:
    try:
        return await server.bind(host, port, tls=tls)
    except OSError as error:
        raise OSError(
            error.errno,
            f"can't listen on {_place(host, port)}: {_reason(error)}; {_advice(error, hint)}",
        ) from error


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _advice(error: OSError, hint: str) -> str:
    """The argument to change: another port only helps if the address itself is this machine's."""
    if error.errno in {errno.EADDRINUSE, errno.EACCES}:
        return f"choose another port ({hint})"
    return "choose an address of this machine (host, --host)"


def _reason(error: OSError) -> str:
    """Why, without where: asyncio puts both into one text."""
    return (error.strerror or str(error)).rpartition(": ")[2].lower()
