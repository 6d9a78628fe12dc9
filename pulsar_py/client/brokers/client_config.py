"""`ClientConfig`: the options of a client as one frozen value, checked when it is made.

Names and defaults are the official Python client's where it has the option, and the Java client's
elsewhere; names of our own end in their unit. Producers and consumers have options of their own
(`ProducerConfig`, `ConsumerConfig`).

Source: the official Python client's `Client`; ClientConfigurationData in Pulsar's Java client.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulsar_py.client.messages.option_checks import check_options
from pulsar_py.common.backoff import DEFAULT_MAXIMUM_SECONDS
from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.common.network.tls import TlsOptions, client_ssl_context

if TYPE_CHECKING:
    import ssl

    from pulsar_py.client.brokers.connection_events import ConnectionListener
    from pulsar_py.client.security.authentication import Authentication

__all__ = ["ClientConfig"]

MIB: Final = 1024 * 1024
OUTAGE_BACKOFF_SECONDS: Final = 2.0
"""How long a broker that is back may go unnoticed."""

_MINIMA: Final[dict[str, float]] = {
    "operation_timeout_seconds": 0.001,
    "connection_timeout_ms": 1,
    "connections_per_broker": 1,
    "concurrent_lookup_requests": 1,
    "max_lookup_redirects": 1,
    "keep_alive_interval_seconds": 0.001,
    "initial_backoff_interval_ms": 1,
    "max_backoff_interval_ms": 1,
    "memory_limit_bytes": 0,
    "stats_interval_in_seconds": 0,
    "message_listener_threads": 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """One client's options."""

    authentication: Authentication | None = None
    """The client's credentials; None sends none."""
    operation_timeout_seconds: float = 30
    """Limit for creating producers and consumers, lookups, closing, and every request."""
    connection_timeout_ms: int = 10_000
    """Limit for TCP, TLS and the handshake with a broker."""
    connections_per_broker: int = 1
    """Connections to each broker, over which producers and consumers are spread."""
    concurrent_lookup_requests: int = 50_000
    """Lookups under way at once; more wait for their turn."""
    max_lookup_redirects: int = 20
    """Redirects of one lookup, after which it fails."""
    keep_alive_interval_seconds: float = 30
    """After this time without a command the client sends PING; after twice that it disconnects."""
    connection_max_idle_seconds: float = 60
    """An unused connection is closed after this time; 0 or less keeps it."""
    initial_backoff_interval_ms: int = 100
    """Delay before the first repetition; it doubles from there on."""
    max_backoff_interval_ms: int | None = None
    """The longest delay between repetitions; None: 2 s where no broker can be reached, and 60 s
    where one answers that it can't serve now."""
    memory_limit_bytes: int = 64 * MIB
    """Bytes of messages that wait for their receipts, of all producers together; 0 for no limit."""
    stats_interval_in_seconds: float = 600
    """Interval at which producers and consumers log their statistics; 0 for never."""
    connection_listener: ConnectionListener | None = None
    """Told when a producer or consumer gets its place at a broker, loses it, or gives up."""
    listener_name: str | None = None
    """Name of the brokers' advertised listener to use; None for their default."""
    message_listener_threads: int = 1
    """How many messages a `message_listener` has under way at once, as tasks of the event loop."""
    tls_trust_certs_file_path: str | None = None
    """PEM file of the authorities to trust; None for the system's."""
    tls_allow_insecure_connection: bool = False
    """Whether any certificate is accepted, without verification."""
    tls_validate_hostname: bool = False
    """Whether the certificate has to name the host."""
    tls_certificate_file_path: str | None = None
    """The client's own certificate (PEM), where it is not that of `AuthenticationTLS`."""
    tls_private_key_file_path: str | None = None
    """Its private key (PEM); None for the same file."""
    tls_ciphers: str | None = None
    """OpenSSL's list of ciphers up to TLS 1.2; None for OpenSSL's own."""

    def __post_init__(self) -> None:
        """Check types and bounds.

        Raises:
            InvalidConfigurationError: An option is of the wrong type or out of bounds; the message
                names it, its value and what is expected.
        """
        check_options(self)
        for name, minimum in _MINIMA.items():
            value = getattr(self, name)
            # Not `value < minimum`, which would let NaN pass.
            if value is not None and not value >= minimum:
                raise InvalidConfigurationError(f"{name}={value!r}: expected at least {minimum}")
        if (self.max_backoff_interval_ms or math.inf) < self.initial_backoff_interval_ms:
            raise InvalidConfigurationError(
                f"max_backoff_interval_ms={self.max_backoff_interval_ms}: expected at least "
                f"initial_backoff_interval_ms={self.initial_backoff_interval_ms}"
            )
        if self.tls_private_key_file_path is not None and self.tls_certificate_file_path is None:
            raise InvalidConfigurationError(
                f"tls_private_key_file_path={self.tls_private_key_file_path!r} "
                "needs tls_certificate_file_path beside it"
            )

    @property
    def initial_backoff_seconds(self) -> float:
        """The delay before the first repetition."""
        return self.initial_backoff_interval_ms / 1000

    @property
    def outage_backoff_seconds(self) -> float:
        """The longest delay between attempts where no broker can be reached."""
        return self._max_backoff_seconds(OUTAGE_BACKOFF_SECONDS)

    @property
    def max_backoff_seconds(self) -> float:
        """The longest delay between attempts where a broker refuses for now."""
        return self._max_backoff_seconds(DEFAULT_MAXIMUM_SECONDS)

    def _max_backoff_seconds(self, default: float) -> float:
        given = self.max_backoff_interval_ms
        return max(default, self.initial_backoff_seconds) if given is None else given / 1000

    @property
    def tls(self) -> TlsOptions:
        """The TLS options."""
        return TlsOptions(
            tls_trust_certs_file_path=self.tls_trust_certs_file_path,
            tls_allow_insecure_connection=self.tls_allow_insecure_connection,
            tls_validate_hostname=self.tls_validate_hostname,
            tls_certificate_file_path=self.tls_certificate_file_path,
            tls_private_key_file_path=self.tls_private_key_file_path,
            tls_ciphers=self.tls_ciphers,
        )

    def new_ssl_context(self) -> ssl.SSLContext:
        """A TLS context by the options; reads the certificates anew, since files may be replaced.

        Raises:
            InvalidConfigurationError: A file is missing, or does not hold what it should.
        """
        authentication = self.authentication
        paths = None if authentication is None else authentication.tls_certificate_paths
        return client_ssl_context(self.tls, paths)
