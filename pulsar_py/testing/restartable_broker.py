"""RestartableBroker: a `Broker` that stops and starts again with its data, in one test.

    async with RestartableBroker() as broker:
        ...
        await broker.restart()      # the same ports, what was confirmed is there

Without a `data_dir` the data stay in memory between the runs: the engine runs on a `MemoryDisk`
that this object keeps, and writes its journal there as on a real one, so that a restart replays the
journal.

Third-party packages it may import: msgspec.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final, TypedDict, Unpack
from urllib.parse import urlsplit

from msgspec.structs import replace

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.embedded_ledgers import LedgerStoreFactory
from pulsar_py.ledgers.ids import LedgerIds
from pulsar_py.ledgers.store import LedgerOptions, LedgerStore
from pulsar_py.metadata.embedded import MetadataStoreFactory, MetadataStores
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.security.authentication import Authenticators
from pulsar_py.standalone import Broker, bookie_settings
from pulsar_py.storage.bookie import Bookie
from pulsar_py.storage.shared.settings import MIB, BookieSettings

__all__ = ["BrokerOptions", "RestartableBroker", "check_option_names", "check_settings"]

_JOURNAL_FILE_BYTES: Final = 4 * MIB
"""Reserved at once, so that a broker of a test takes little memory."""


class BrokerOptions(TypedDict, total=False):
    """The options of `BrokerThread` and of the fixtures: those of `Broker`, which explains them."""

    data_dir: str | Path | None
    config: BrokerConfig | Mapping[str, Any] | None  # Any: a setting has its own type
    host: str
    port: int | None
    web_port: int | None
    clock: Clock | None
    chance: Random | None
    metadata_store_factory: MetadataStoreFactory | None
    ledger_store_factory: LedgerStoreFactory | None
    authenticators: Authenticators | None
    ledger_options: LedgerOptions | None
    is_of_cluster: bool


_CONFIG: Final = frozenset(("setting", "settings"))
"""Names that mean the option `config`, which holds what all documents call settings."""


def check_option_names(names: Iterable[str], taker: str) -> None:
    """Refuse what is no option of a broker.

    Raises:
        TypeError: It names the option, who takes it, and the nearest option there is.
    """
    known = BrokerOptions.__annotations__
    for name in names:
        if name not in known:
            from difflib import get_close_matches  # noqa: PLC0415 - only for a mistake

            near = ["config"] if name in _CONFIG else get_close_matches(name, known, n=1)
            hint = f", did you mean {near[0]}?" if near else f"; it has {', '.join(known)}"
            raise TypeError(f"{taker} has no option {name}{hint}")


def check_settings(config: object, taker: str) -> None:
    """Refuse what are no settings of a broker.

    Raises:
        ValueError: It says which setting is wrong, and who takes it.
        TypeError: They are no mapping.
    """
    if config is None or isinstance(config, BrokerConfig):
        return
    if not isinstance(config, Mapping):
        raise TypeError(f"{taker}: config: expected a mapping of settings, got {config!r:.100}")
    try:
        BrokerConfig.from_values(config)
    except ConfigurationError as error:
        raise ValueError(f"{taker}: config: {error}") from error


class RestartableBroker(Broker):
    """A broker that can be started again; owned by the test."""

    def __init__(self, **options: Unpack[BrokerOptions]) -> None:
        """Take the options of `Broker`.

        Raises:
            TypeError: One is unknown.
            ConfigurationError: A setting is unknown or out of bounds.
        """
        check_option_names(options, type(self).__name__)
        self._options = options
        is_in_memory = options.get("data_dir") is None and not (
            options.get("metadata_store_factory") or options.get("ledger_store_factory")
        )
        if is_in_memory:
            config = options.get("config")
            if not isinstance(config, BrokerConfig):
                config = BrokerConfig.from_values(config or {})
            clock = options.get("clock") or SystemClock()
            memory = _KeptMemory(bookie_settings(config, is_volatile=False), clock)
            options["metadata_store_factory"] = memory.metadata
            options["ledger_store_factory"] = memory
        super().__init__(**options)

    async def restart(self) -> None:
        """Stop, with everything written, and start again on the same ports.

        Connections end; what was confirmed, and what was acknowledged, is there again. May be
        called in any state, also after `stop`.

        Raises:
            OSError: Somebody else has taken a port meanwhile.
        """
        if self._service is not None:
            addresses = self._addresses
            self._options["port"] = _port_of(addresses.broker_url)
            self._options["web_port"] = _port_of(addresses.http_url)
            self._options["config"] = self._config.replace(
                brokerServicePortTls=_port_of(addresses.broker_url_tls),
                webServicePortTls=_port_of(addresses.http_url_tls),
            )
        await self.stop()
        Broker.__init__(self, **self._options)
        await self.start()


def _port_of(url: str | None) -> int | None:
    return None if url is None else urlsplit(url).port


class _KeptMemory:
    """Metadata and ledgers in memory that outlive the stores on them: two factories of stores."""

    def __init__(self, settings: BookieSettings, clock: Clock) -> None:
        self._settings = replace(settings, journal_file_bytes=_JOURNAL_FILE_BYTES, reserve_bytes=0)
        self._disk = MemoryDisk()
        self._metadata = MemoryMetadataStore(clock)

    async def metadata(self, clock: Clock) -> MetadataStores:
        """See `MetadataStoreFactory`."""
        del clock
        store = self._metadata.connect()
        return MetadataStores(local=store, configuration=store)

    async def prepare(self) -> None:
        """See `LedgerStoreFactory`."""

    async def __call__(
        self, metadata: MetadataStore, ledger_ids: LedgerIds, clock: Clock
    ) -> LedgerStore:
        """See `LedgerStoreFactory`."""
        del metadata
        return await Bookie.start(
            self._disk, clock=clock, ledger_ids=ledger_ids, settings=self._settings
        )
