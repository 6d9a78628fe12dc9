"""Broker: the composition root of a whole broker in the caller's event loop.

    async with Broker() as broker:                      # in memory, on free ports
        client = pulsar.Client(broker.service_url)

    async with Broker(data_dir="data", port=6650, web_port=8080) as broker: ...

Builds, from the bottom to the top, metadata store, ledger store, broker, listener and
administration, and takes them down in the opposite order, with everything flushed. Nothing here is
global: any number of brokers can run in one process. Storage, listeners and HTTP get their part of
`BrokerConfig` from here, what lies above the storage from `server.broker`.

On disk a data directory holds `metadata.sqlite`, `ledgers/`, and in `tmp/` what a compaction can't
hold in memory; one process owns it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from pulsar_py.admin.foreign_pages import PageRules
from pulsar_py.common.errors import (
    ConfigurationError,
)
from pulsar_py.common.failures import OnFailureAwait
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.common.loops.loop_watch import LoopWatch
from pulsar_py.common.loops.serving_loops import serves, serves_no_more
from pulsar_py.embedded_backup import EmbeddedBackup
from pulsar_py.embedded_ledgers import EmbeddedLedgers, LedgerStoreFactory
from pulsar_py.ledgers.store import LedgerOptions, LedgerStore
from pulsar_py.metadata.embedded import EmbeddedMetadata, MetadataStoreFactory
from pulsar_py.metadata.initialization import initialize_cluster
from pulsar_py.metadata.ledger_ids import MetadataLedgerIds
from pulsar_py.metadata.move_progress import check_no_move
from pulsar_py.ports import PortNumbers, Ports
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.hooks.broker_hooks import MODULES_CALLING_USERS
from pulsar_py.server.listeners import Listener
from pulsar_py.server.namespaces.lookup import (
    BrokerAddresses,
    LocalAddresses,
    parse_advertised_listeners,
    with_http_of,
)
from pulsar_py.server.security.authentication import Authenticators
from pulsar_py.server.security.tls import TlsSettings
from pulsar_py.server.security_parts import proxy_rules
from pulsar_py.storage.shared.settings import MIB, BookieSettings
from pulsar_py.web import Web

logger = logging.getLogger(__name__)

ENTRY_ROOM_BYTES = MIB
"""Bytes by which an entry may exceed the largest message: metadata of broker and batch, and the
states of cursors and definitions of schemas, which come through requests of about that size."""

RESERVE_BYTES = 16 * MIB
"""Kept back on the disk: ten times what a start with open topics writes to metadata and journal."""

TEMPORARY = "tmp"

_WILDCARD_HOSTS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - recognised, not bound
_LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class Broker:
    """One broker, standalone unless it is given other stores.

    Use it with `async with`, or call `start` and `stop`.

    A broker can be started once. `data_dir` None keeps everything in memory.
    """

    def __init__(
        self,
        *,
        data_dir: str | Path | None = None,
        config: BrokerConfig | Mapping[str, Any] | None = None,  # Any: a setting has its own type
        host: str = "127.0.0.1",
        port: int | None = 0,
        web_port: int | None = 0,
        clock: Clock | None = None,
        chance: random.Random | None = None,
        metadata_store_factory: MetadataStoreFactory | None = None,
        ledger_store_factory: LedgerStoreFactory | None = None,
        ledger_options: LedgerOptions | None = None,
        is_of_cluster: bool = False,
        authenticators: Authenticators | None = None,
    ) -> None:
        """Note the settings; nothing is opened before `start`.

        Args:
            data_dir: Where everything is stored; made if missing.
            config: Settings of `broker.conf`; a mapping names those that differ from the default,
                with values of their types or texts as in the file.
            host: Address to listen on, also the one clients are told (`localhost` for a wildcard)
                unless `advertisedAddress` says otherwise.
            port: Of the binary protocol in clear text, whatever `brokerServicePort` of `config` is;
                0 takes a free one, None opens none. Those with TLS are `brokerServicePortTls` and
                `webServicePortTls` of `config`.
            web_port: Of HTTP in clear text, likewise.
            clock: What everything reads the time from; None for the machine's.
            chance: What everything random is drawn from; None for a generator of its own.
            metadata_store_factory: Opens the metadata stores; None for the embedded one.
            ledger_store_factory: Opens the ledger store; None for the embedded one.
            ledger_options: Of new ledgers where no policy says otherwise; None: one copy.
            is_of_cluster: Whether the cluster exists without this broker, which changes neither
                its addresses nor its tenants; else the broker makes what a new cluster starts with:
                the cluster, and `public/default` unless clients authenticate and
                `brokerClientAuthenticationPlugin` is not set, when a super-user makes both.
            authenticators: The methods by which clients authenticate; None: those that
                `config` names.

        Raises:
            ConfigurationError: A setting is unknown or out of bounds.
        """
        self._data_dir = None if data_dir is None else Path(data_dir)
        self._config = (
            config if isinstance(config, BrokerConfig) else BrokerConfig.from_values(config or {})
        )
        self._host = host
        self._page_rules = page_rules(self._config, host)
        self._port = port
        self._web_port = web_port
        self._clock = clock or SystemClock()
        # In virtual time nobody waits for real.
        self._is_loop_watched = clock is None
        self._chance = chance
        self._open_metadata = metadata_store_factory or EmbeddedMetadata(self._data_dir)
        self._ledger_store_factory = ledger_store_factory or EmbeddedLedgers(
            self._data_dir, bookie_settings(self._config, is_volatile=self._data_dir is None)
        )
        self._ledger_options = ledger_options
        self._is_of_cluster = is_of_cluster
        self._authenticators = authenticators
        self._stack = AsyncExitStack()  # What was started, to be stopped in opposite order.
        self._is_used = False
        self._is_running = False
        self._service: BrokerService | None = None  # None before start
        self._addresses = BrokerAddresses(broker_url=None)

    @property
    def service_url(self) -> str:
        """The URL for clients: `pulsar://host:port`, or `pulsar+ssl` without a port in clear."""
        return self._checked(self._addresses.broker_url or self._addresses.broker_url_tls)

    @property
    def service_url_tls(self) -> str | None:
        """The URL for clients over TLS, `pulsar+ssl://host:port`; None without such a port."""
        self._checked(self.service_url)
        return self._addresses.broker_url_tls

    @property
    def web_service_url(self) -> str:
        """The URL of administration and metrics: `http://host:port`, or `https` likewise."""
        return self._checked(self._addresses.http_url or self._addresses.http_url_tls)

    @property
    def web_service_url_tls(self) -> str | None:
        """The URL of administration over TLS, `https://host:port`; None without such a port."""
        self._checked(self.web_service_url)
        return self._addresses.http_url_tls

    @property
    def service(self) -> BrokerService:
        """The broker behind the ports, for tests and tools in the same process."""
        if self._service is None:
            raise RuntimeError("the broker is not started: await start(), or use `async with`")
        return self._service

    def __repr__(self) -> str:
        was_started = "stopped" if self._is_used else "not started"
        state = "running" if self._is_running else was_started
        addresses = self._addresses
        url = addresses.broker_url or addresses.broker_url_tls or "no address yet"
        return f"{type(self).__name__}({url}, {state})"

    @staticmethod
    def _checked(url: str | None) -> str:
        if not url:
            raise RuntimeError("the broker is not started: await start(), or use `async with`")
        return url

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Return when both ports answer.

        Raises:
            DirectoryLockedError: Another process has the data directory.
            CorruptDataError: What is stored is damaged.
            MigrationError: What is stored was moved elsewhere, or a move here has not ended.
            OSError: A port can't be bound.
            RuntimeError: It was started before.
        """
        if self._is_used:
            raise RuntimeError("a Broker can be started once: make another one")
        self._is_used = True
        async with OnFailureAwait(self._stack.aclose):
            await self._start()
        self._is_running = True

    async def stop(self) -> None:
        """Stop serving, write everything down and release the directory. May be called again.

        A broker of a cluster first hands its bundles over to the others.
        """
        if self._is_running and self._service is not None:
            await self._service.hand_over()
        await self._stack.aclose()
        if self._is_running:
            self._is_running = False
            logger.info("broker stopped", extra={"service_url": self.service_url})

    async def _start(self) -> None:
        clock = self._clock
        await self._ledger_store_factory.prepare()
        stores = await self._open_metadata(clock)
        self._stack.push_async_callback(stores.close)
        metadata = stores.local
        await check_no_move(metadata)
        ledger_ids = MetadataLedgerIds(metadata)
        self._stack.push_async_callback(ledger_ids.close)
        ledger_store = await self._ledger_store_factory(metadata, ledger_ids, clock)
        self._stack.push_async_callback(ledger_store.close)
        service = BrokerService(
            self._config,
            ledger_store=ledger_store,
            metadata=metadata,
            configuration_metadata=stores.configuration,
            clock=clock,
            chance=self._chance,
            ledger_options=self._ledger_options,
            is_of_cluster=self._is_of_cluster,
            authenticators=self._authenticators,
            temporary_directory=self._temporary_directory(),
        )
        service.backups = EmbeddedBackup.of(self._data_dir, metadata, ledger_store)
        self._service = service
        self._stack.push_async_callback(service.close)
        await service.start()
        await self._listen(service, clock, ledger_store)
        loop = asyncio.get_running_loop()
        serves(loop, self.service_url)
        self._stack.callback(serves_no_more, loop, self.service_url)
        if self._is_loop_watched:
            watch = LoopWatch(
                loop, service_url=self.service_url, calling_users=MODULES_CALLING_USERS
            )
            self._stack.callback(watch.stop)
        logger.info(
            "broker started",
            extra={"service_url": self.service_url, "web_service_url": self.web_service_url},
        )

    async def _listen(
        self, service: BrokerService, clock: Clock, ledger_store: LedgerStore
    ) -> None:
        """Bind all ports, store what a new cluster has, and only then accept connections."""
        config = self._config
        in_virtual_time = not self._is_loop_watched
        web = Web(service, clock, self._page_rules, imports_at_once=in_virtual_time)
        listener = Listener(
            service.connections, proxy_rules(config).binary, imports_at_once=in_virtual_time
        )
        ports = Ports(
            listener,
            web.server,
            binary_tls=tls_settings(config, is_http=False),
            http_tls=tls_settings(config, is_http=True),
            reload_seconds=config.tlsCertRefreshCheckDurationSec,
        )
        self._stack.push_async_callback(ports.close)
        self._stack.push_async_callback(web.close)
        host = self._advertised_host()
        numbers = PortNumbers(
            binary=self._port,
            binary_tls=config.brokerServicePortTls,
            http=self._web_port,
            http_tls=config.webServicePortTls,
        )
        await ports.bind(self._host, numbers, advertised_host=host)
        bound = self._addresses = ports.addresses
        if config.shortCircuitSocketPath:
            self._lend_logs(service, ledger_store, listener.bound_addresses)
        if not self._is_of_cluster and makes_tenants(config):
            await initialize_cluster(
                service.resources,
                config.clusterName,
                service_url=bound.http_url,
                service_url_tls=bound.http_url_tls,
                broker_service_url=bound.broker_url,
                broker_service_url_tls=bound.broker_url_tls,
                bundles_count=config.defaultNumberOfNamespaceBundles,
                admin_roles=sorted(config.superUserRoles),
            )
        is_loopback = host in _LOOPBACK_HOSTS and not self._is_of_cluster
        addresses = local_addresses(
            config, bound, is_loopback=is_loopback, bound_urls=ports.bound_urls
        )
        warn_of_clear_text(config, addresses)
        service.set_addresses(addresses)
        web.set_addresses(addresses)
        await service.join_cluster()
        if service.membership is not None:
            from pulsar_py.policy_logs import PolicyLogs  # noqa: PLC0415 - of a cluster alone
            from pulsar_py.server.log_owners import (  # noqa: PLC0415 - the same
                ClusterLogOwners,
            )

            owners = ClusterLogOwners(service.namespaces, service.membership, service.elsewhere)
            service.topic_policies.follow_others(owners, PolicyLogs(service, self._chance).open)
        await ports.serve(clock)

    def _lend_logs(
        self, service: BrokerService, store: LedgerStore, addresses: list[tuple[str, int]]
    ) -> None:
        """Let readers on this machine read stored entries past the broker."""
        from pulsar_py.server.short_circuit import (  # noqa: PLC0415 - few want that
            ShortCircuitListener,
        )

        path = Path(self._config.shortCircuitSocketPath)
        filters = service.hooks.filters
        lending = ShortCircuitListener.bound(store, path, may_lend=lambda: not filters.may_be_used)
        if lending is not None:
            self._stack.push_async_callback(lending.close)
            lending.serve(addresses)
            logger.info("short-circuit reads", extra={"path": str(path)})
            if filters.may_be_used:
                logger.warning(
                    "nothing is lent to short-circuit readers while there may be entry filters, "
                    "which decide who gets an entry: see entryFilterNames, entryFiltersDirectory"
                )

    def _temporary_directory(self) -> Path | None:
        """Where files may be that do not outlive the broker; None if the first one decides that."""
        if self._data_dir is not None:
            return self._data_dir / TEMPORARY
        if not self._is_of_cluster or not self._is_loop_watched:
            return None
        import tempfile  # noqa: PLC0415 - a standalone broker does without

        # A broker of a cluster may be started again there, and then tidies up.
        with suppress(OSError):  # there may be none that can be written
            return Path(tempfile.gettempdir())
        return None

    def _advertised_host(self) -> str:
        if self._config.advertisedAddress:
            return self._config.advertisedAddress
        host = "localhost" if self._host in _WILDCARD_HOSTS else self._host
        return f"[{host}]" if ":" in host else host


def tls_settings(config: BrokerConfig, *, is_http: bool) -> TlsSettings:
    """The settings of a port with TLS."""
    has_stores = config.tlsEnabledWithKeyStore
    return TlsSettings(
        certificate_path=config.tlsCertificateFilePath,
        key_path=config.tlsKeyFilePath,
        trust_path=config.tlsTrustCertsFilePath,
        key_store_path=config.tlsKeyStore if has_stores else "",
        key_store_type=config.tlsKeyStoreType,
        key_store_password=config.tlsKeyStorePassword,
        trust_store_path=config.tlsTrustStore,
        trust_store_type=config.tlsTrustStoreType,
        trust_store_password=config.tlsTrustStorePassword,
        allows_insecure=config.tlsAllowInsecureConnection,
        requires_client_certificate=config.tlsRequireTrustedClientCertOnConnect,
        protocols=config.webServiceTlsProtocols if is_http else config.tlsProtocols,
        ciphers=config.webServiceTlsCiphers if is_http else config.tlsCiphers,
    )


def warn_of_clear_text(config: BrokerConfig, addresses: LocalAddresses) -> None:
    """Log which ports let credentials travel readable between machines."""
    in_clear = addresses.outside_clear_text_urls
    if config.authenticationEnabled and in_clear:
        logger.warning(
            "other machines can connect without TLS, so that tokens, passwords and messages can "
            "be read on the way: leave brokerServicePort and webServicePort empty and set "
            "brokerServicePortTls and webServicePortTls, or listen on 127.0.0.1",
            extra={"ports": ", ".join(in_clear)},
        )


def page_rules(config: BrokerConfig, bound_host: str) -> PageRules:
    """What browsers may send to a broker that binds `bound_host`.

    Raises:
        ConfigurationError: An entry of a list is none, or the advertised listeners can't be read.
    """
    advertised = [config.advertisedAddress]
    for addresses in parse_advertised_listeners(config.advertisedListeners).values():
        urls = (
            addresses.broker_url,
            addresses.broker_url_tls,
            addresses.http_url,
            addresses.http_url_tls,
        )
        advertised.extend(urlsplit(url or "").netloc for url in urls)
    return PageRules.of(
        allowed_origins=config.webServiceAllowedOrigins,
        allowed_hosts=config.webServiceAllowedHosts,
        own_hosts=advertised,
        bound_host=bound_host,
        is_open=not config.authenticationEnabled or bool(config.anonymousUserRole),
    )


def makes_tenants(config: BrokerConfig) -> bool:
    """Whether a standalone broker makes its cluster, tenants and namespaces.

    With authentication it has to have credentials itself, as Apache Pulsar's: otherwise whoever
    sets the broker up makes them, with the roles that they are for.
    """
    plugin = config.brokerClientAuthenticationPlugin.rpartition(".")[2]
    has_credentials = plugin not in {"", "AuthenticationDisabled"}
    return not config.authenticationEnabled or has_credentials


def local_addresses(
    config: BrokerConfig,
    bound: BrokerAddresses,
    *,
    is_loopback: bool,
    bound_urls: tuple[str, ...],
) -> LocalAddresses:
    """The addresses that lookups answer: the advertised listeners, else the bound address.

    That of HTTP names a broker of a cluster, so it is the bound one where no listener has one.

    Raises:
        ConfigurationError: The advertised listeners can't be read, or lack the internal one.
    """
    listeners = parse_advertised_listeners(config.advertisedListeners)
    if not listeners:
        return LocalAddresses(default=bound, is_loopback=is_loopback, bound_urls=bound_urls)
    internal = config.internalListenerName or next(iter(listeners))
    if internal not in listeners:
        raise ConfigurationError(
            f"internalListenerName={internal} is no advertised listener: expected one of "
            f"advertisedListeners, {', '.join(listeners)}"
        )
    return LocalAddresses(
        default=with_http_of(bound, listeners[internal]),
        by_listener=listeners,
        bound_urls=bound_urls,
    )


def bookie_settings(config: BrokerConfig, *, is_volatile: bool) -> BookieSettings:
    """The storage engine's settings; an interval of 0 is never."""
    write_cache_bytes = config.dbStorage_writeCacheMaxSizeMb * MIB
    # Both generations, and what connections may have unanswered, with each entry's overhead.
    unanswered_bytes = max(config.maxMessagePublishBufferSizeInMB, 64) * MIB
    max_entry_bytes = config.maxMessageSize + ENTRY_ROOM_BYTES
    append_limit_bytes = 2 * write_cache_bytes + max(2 * unanswered_bytes, max_entry_bytes)
    return BookieSettings(
        is_volatile=is_volatile,
        write_cache_bytes=write_cache_bytes,
        append_limit_bytes=append_limit_bytes,
        max_entry_bytes=max_entry_bytes,
        read_cache_bytes=config.dbStorage_readAheadCacheMaxSizeMb * MIB,
        journal_file_bytes=config.journalMaxSizeMB * MIB,
        journal_spare_files_count=config.journalMaxBackups * config.journalReuseFiles,
        is_journal_direct=config.journalDirectIO,
        are_entry_logs_direct=config.dbStorage_directIOEntryLogger,
        flush_interval_seconds=config.flushInterval / 1000,
        entry_log_bytes=config.logSizeLimit,
        garbage_interval_seconds=config.gcWaitTime / 1000,
        minor_compaction_threshold=config.minorCompactionThreshold,
        minor_compaction_interval_seconds=config.minorCompactionInterval or math.inf,
        major_compaction_threshold=config.majorCompactionThreshold,
        major_compaction_interval_seconds=config.majorCompactionInterval or math.inf,
        reserve_bytes=RESERVE_BYTES,
    )
