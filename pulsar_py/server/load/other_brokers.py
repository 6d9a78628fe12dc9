"""`OtherBrokers`: REST calls from one broker of a cluster to another (edge).

A leader has other brokers' bundles moved and split, and a broker that is asked about a whole
namespace asks those that serve parts of it. Each call goes to one broker and is not redirected, so
that nobody sends it round in a circle. The broker proves its own role, as its settings say; what
its caller may do was looked at before.

Source: PulsarService.getAdminClient, AuthenticationToken, AuthenticationBasic, AuthenticationTls in
Pulsar.
"""

from __future__ import annotations

import asyncio
import base64
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from pulsar_py.common.errors import ConfigurationError, ServiceError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.server.load.broker_report import BrokerReport

if TYPE_CHECKING:
    import ssl

    from pulsar_py.common.network.http_client import HttpClient, HttpResponse

FORWARDED: Final = "X-Pulsar-Py-Forwarded"
"""Header of a call that another broker made, for who looks at requests."""
TIMEOUT_SECONDS: Final = 70.0
"""For one call: unloading a bundle may take a minute."""


class CallSettings(Struct, frozen=True, kw_only=True):
    """The settings of calls to other brokers: TLS and credentials."""

    plugin: str = ""
    """The name of the class that proves its role in Pulsar; its last word counts."""
    parameters: str = ""
    """Its credentials."""
    uses_tls: bool = False
    trust_path: str = ""
    certificate_path: str = ""
    key_path: str = ""
    verifies_hostname: bool = False


class OtherBrokerError(ServiceError):
    """Another broker refused a call of this one."""

    def __init__(
        self, text: str, status: int = 0, reason: str = "", location: str | None = None
    ) -> None:
        """`status` and `reason` are those of its answer; 0 where there was none.

        `location` is where a redirect leads, which is not followed.
        """
        super().__init__(text)
        self.status = status
        self.reason = reason or text
        self.location = location


class OtherBrokers:
    """The calls of one broker, which closes it."""

    def __init__(self, settings: CallSettings) -> None:
        """Nothing is connected or read yet."""
        self._settings = settings
        self._client: HttpClient | None = None  # None before the first call
        self.calls_count = 0
        """Calls so far."""

    def url_of(self, report: BrokerReport) -> str | None:
        """Where a broker's REST API is; None if it names no address."""
        if self._settings.uses_tls:
            return report.web_url_tls or report.web_url
        return report.web_url or report.web_url_tls

    async def call(
        self, report: BrokerReport, method: str, path: str, body: bytes = b""
    ) -> HttpResponse:
        """Send a request to a broker, and return its successful answer.

        Raises:
            OtherBrokerError: It has no address, or refused; the text says what.
            ConfigurationError: The broker's own credentials can't be read.
            ClientError: It could not be reached, or did not answer in time.
        """
        url = self.url_of(report)
        if url is None:
            raise OtherBrokerError(f"{report.broker_id} names no address of its REST API")
        return await self.call_url(url, method, path, body)

    async def call_url(self, url: str, method: str, path: str, body: bytes = b"") -> HttpResponse:
        """As `call`, for the broker at `http://host:port`.

        Raises:
            OtherBrokerError, ConfigurationError, ClientError: As `call`.
        """
        from pulsar_py.common.network.http_client import (  # noqa: PLC0415 - of a cluster
            HttpClient,
            HttpRequest,
        )

        headers = {FORWARDED: "true", **await _credentials(self._settings)}
        if body:
            headers["Content-Type"] = "application/json"
        if self._client is None:
            self._client = HttpClient(
                timeout_seconds=TIMEOUT_SECONDS,
                ssl_context=await self._context(url),
                trust_options="brokerClientTrustCertsFilePath",
            )
        self.calls_count += 1
        request = HttpRequest(method=method, url=url + path, headers=headers, body=body)
        answer = await self._client.send(request)
        if answer.is_success:
            return answer
        if answer.status == HTTPStatus.TEMPORARY_REDIRECT:
            where = answer.headers.get("location", "")
            raise OtherBrokerError(
                f"{url}{path}: got a redirect to {where or 'another broker'}",
                HTTPStatus.SERVICE_UNAVAILABLE,  # for the caller, who is sent nowhere
                location=where,
            )
        reason = answer.reason()
        raise OtherBrokerError(f"{url}{path}: {answer.status} {reason}", answer.status, reason)

    async def _context(self, url: str) -> ssl.SSLContext | None:
        if not url.startswith("https:"):
            return None
        from pulsar_py.common.network.tls import (  # noqa: PLC0415 - of a cluster
            TlsOptions,
            client_ssl_context,
        )

        settings = self._settings
        certificate, key = settings.certificate_path, settings.key_path
        if settings.plugin.endswith("AuthenticationTls"):
            given = _pairs(settings.parameters)
            certificate = given.get("tlsCertFile", certificate)
            key = given.get("tlsKeyFile", key)
        options = TlsOptions(
            tls_trust_certs_file_path=settings.trust_path or None,
            tls_validate_hostname=settings.verifies_hostname,
            tls_certificate_file_path=certificate or None,
            tls_private_key_file_path=key or None,
        )
        return await asyncio.to_thread(client_ssl_context, options)

    async def close(self) -> None:
        """Close idle connections."""
        if self._client is not None:
            await self._client.close()


async def own_token(settings: CallSettings) -> str | None:
    """The token by which the broker proves its role; None where it has another way.

    Raises:
        ConfigurationError: Its file can't be read.
    """
    if settings.plugin.rpartition(".")[2] != "AuthenticationToken":
        return None
    return await _token(settings.parameters)


async def _credentials(settings: CallSettings) -> dict[str, str]:
    """The headers that prove the broker's role.

    Raises:
        ConfigurationError: They can't be read, or the way is none that is offered.
    """
    name = settings.plugin.rpartition(".")[2]
    if name in {"", "AuthenticationDisabled", "AuthenticationTls"}:
        return {}
    if (token := await own_token(settings)) is not None:
        return {"Authorization": f"Bearer {token}"}
    if name == "AuthenticationBasic":
        try:
            given = parse_json(settings.parameters.encode())
            pair = f"{given['userId']}:{given['password']}"
        except (ValueError, KeyError, TypeError):
            raise ConfigurationError(
                "brokerClientAuthenticationParameters: expected "
                '{"userId":"NAME","password":"TEXT"} for AuthenticationBasic'
            ) from None
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    raise ConfigurationError(
        f"brokerClientAuthenticationPlugin={settings.plugin} is not offered; there are "
        "AuthenticationToken, AuthenticationBasic and AuthenticationTls"
    )


async def _token(text: str) -> str:
    """A token that is given as it is, or in a file, which may be replaced at any time.

    Raises:
        ConfigurationError: The file can't be read.
    """
    if not text.startswith("file:"):
        return text.removeprefix("token:")
    path = Path(unquote(urlsplit(text).path))
    try:
        return (await asyncio.to_thread(path.read_text, "utf-8")).strip()
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"brokerClientAuthenticationParameters: {error}") from error


def _pairs(text: str) -> dict[str, str]:
    """`name:value,name:value`."""
    return {name: value for name, _, value in (each.partition(":") for each in text.split(","))}
