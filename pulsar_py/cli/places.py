"""Connects commands to ZooKeeper and BookKeeper, and prints their results (edge).

Results go to standard output, as a table with a line of names or as JSON, one object a line.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pulsar_py.cli.answering.json_lines import in_camel_case, json_line
from pulsar_py.cli.broker import ledger_options, store_settings
from pulsar_py.cli.standalone import load_settings, one_line
from pulsar_py.cluster_stores import ClusterStores
from pulsar_py.common.errors import PulsarError
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.ledgers.store import LedgerOptions, LedgerStore
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.metadata.store import MetadataStore

Row = Mapping[str, object]


def run(job: Coroutine[object, object, int]) -> int:
    """Run a command; returns its exit code. An error is printed as one line."""
    try:
        return asyncio.run(job)
    except BrokenPipeError:
        raise  # whoever read the output has enough, and click ends quietly
    except (PulsarError, OSError, ValueError) as error:
        sys.stderr.write(f"Error: {one_line(error)}\n")
        return 1


@dataclass(frozen=True, slots=True)
class ClusterClients:
    """Clients of what was named on the command line."""

    metadata: MetadataStores
    bookkeeper_metadata: MetadataStore
    ledgers_root: str
    clock: Clock
    open_ledgers: Callable[[], Awaitable[LedgerStore]]
    password: bytes = b""
    """Of ledgers whose metadata does not say it."""
    cluster: str = ""
    """The setting clusterName."""
    address: str = ""
    """Of the metadata store."""
    ledger_options: LedgerOptions = field(default_factory=LedgerOptions)
    """How the brokers make ledgers, and open them."""

    @asynccontextmanager
    async def ledgers(self) -> AsyncIterator[LedgerStore]:
        """A client of the bookies."""
        store = await self.open_ledgers()
        try:
            yield store
        finally:
            await store.close()


def look(
    places: Mapping[str, Any],  # Any: each option has its own type
    job: Callable[[ClusterClients], Coroutine[object, object, int]],
) -> int:
    """Run a job on the cluster that the options name; returns its exit code."""

    async def work() -> int:
        async with connected(places) as cluster:
            return await job(cluster)

    return run(work())


@asynccontextmanager
async def connected(places: Mapping[str, Any]) -> AsyncIterator[ClusterClients]:  # Any: as above
    """Clients of the ZooKeepers that the options name.

    Raises:
        ConfigurationError: They name none, or one that is not served.
        MetadataUnavailableError: No server answered in time.
    """
    overrides = tuple(places["overrides"])
    if places["metadata_store"]:
        overrides += (f"metadataStoreUrl={places['metadata_store']}",)
    if places["bookkeeper_uri"]:
        overrides += (f"bookkeeperMetadataServiceUri={places['bookkeeper_uri']}",)
    config = load_settings(places["config_file"], overrides, is_of_cluster=True)
    settings = store_settings(config)
    stores, clock = ClusterStores(settings), SystemClock()
    try:
        yield ClusterClients(
            metadata=await stores.metadata(clock),
            bookkeeper_metadata=await stores.bookkeeper_metadata(clock),
            ledgers_root=settings.addresses.ledgers_root,
            clock=clock,
            open_ledgers=lambda: stores.ledgers(clock),
            password=config.managedLedgerPassword.encode(),
            cluster=config.clusterName,
            address=str(settings.addresses.local),
            ledger_options=ledger_options(config),
        )
    finally:
        await stores.close()


def show(rows: Sequence[Row], names: Sequence[str], output: str) -> None:
    """Print rows, of which each has all `names`."""
    if output == "json":
        for row in rows:
            sys.stdout.write(f"{json_line(in_camel_case(row))}\n")
        return
    lines = [[name.upper() for name in names]]
    lines += [[_cell(row[name]) for name in names] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def show_one(row: Row, output: str) -> None:
    """Print one thing, a line for each of its members."""
    if output == "json":
        sys.stdout.write(f"{json_line(in_camel_case(row))}\n")
        return
    width = max(map(len, row))
    for name, value in row.items():
        sys.stdout.write(f"{name.ljust(width)}  {_cell(value)}\n")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, Mapping):
        return " ".join(f"{name}={each}" for name, each in value.items()) or "-"
    if isinstance(value, list | tuple):
        return " ".join(map(_cell, value)) or "-"
    return str(value)
