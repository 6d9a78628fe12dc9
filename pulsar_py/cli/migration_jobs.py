"""The work of `pulsar-py migrate`: opens both sides, prints the plan, and has it done (edge).

What it finds and does goes to standard output, a line each; progress to a terminal's standard
error. The directory is read without a change, locked against brokers; the file that says that it
was moved is written when the move begins.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pulsar_py.cli.answering.answers import answer
from pulsar_py.cli.backups.progress import progress
from pulsar_py.cli.places import ClusterClients, connected
from pulsar_py.cli.standalone import load_settings
from pulsar_py.cli.storage.jobs import Inspection, inspect, opened
from pulsar_py.common.disks.local_disk import LocalDisk
from pulsar_py.common.errors import ConfigurationError, MigrationError
from pulsar_py.common.failures import OnFailureAwait
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.embedded_ledgers import EmbeddedLedgers
from pulsar_py.ledgers.chosen_ledgers import ChosenLedgers
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.metadata import instance_id, paths
from pulsar_py.metadata.cluster_checks import check_migration
from pulsar_py.metadata.embedded import FILE, EmbeddedMetadata
from pulsar_py.metadata.ledger_ids import MetadataLedgerIds
from pulsar_py.metadata.move_progress import check_no_move, read_progress
from pulsar_py.metadata.moved_marker import check_not_moved, remove_marker, write_marker
from pulsar_py.migration.cluster_contents import read_cluster
from pulsar_py.migration.contents import Contents, MoveTarget, own_cluster
from pulsar_py.migration.moved_keys import Existing, moved
from pulsar_py.migration.mover import Mover
from pulsar_py.standalone import bookie_settings
from pulsar_py.storage.inspection.reading import SurveyedStore

Options = Mapping[str, Any]  # Any: each option has its own type
OnBegin = Callable[[], Awaitable[None]]


async def release(data_dir: Path, output: str = "text") -> int:
    """Let brokers start in a directory again; returns the exit code."""
    if remove_marker(data_dir):
        text = (
            f"{data_dir}: a broker may start here again; the cluster gets nothing of what it does"
        )
        answer(output, {"directory": str(data_dir), "outcome": "released"}, text)
        return 0
    raise ConfigurationError(f"{data_dir}: nothing keeps a broker from starting here")


# In


async def move_in(data_dir: Path, options: Options, *, is_dry_run: bool) -> int:
    """Move a directory into the cluster that the options name; returns the exit code."""
    clock = SystemClock()
    async with opened(data_dir) as disk, connected(options) as cluster:
        found = await inspect(data_dir, disk)
        contents = contents_of(found, disk, options["source_cluster"])
        async with _cluster_target(cluster) as target:
            total = sum(each.record.length_bytes for each in found.survey.ledgers.values())
            with progress("moving", total) as moved_bytes:
                mover = Mover(
                    contents,
                    target,
                    clock,
                    is_renumbered=options["is_renumbered"],
                    existing=Existing(options["existing"]),
                    on_copied=moved_bytes,
                )

                async def mark() -> None:
                    write_marker(
                        data_dir,
                        cluster=target.cluster,
                        address=target.address,
                        time=datetime.fromtimestamp(clock.wall_time_millis() / 1000, UTC).isoformat(
                            timespec="seconds"
                        ),
                    )

                done = await _carry_out(
                    mover, options["output"], is_dry_run=is_dry_run, on_begin=mark
                )
    if done == 0 and not is_dry_run:
        answer(
            options["output"],
            {"directory": str(data_dir), "outcome": "moved"},
            f"moved, and compared: {data_dir} stays as it is, and no broker starts there; start "
            "those of the cluster",
        )
    return done


def contents_of(found: Inspection, disk: LocalDisk, cluster: str | None) -> Contents:
    """What an inspected directory has.

    Raises:
        MigrationError: It is damaged, or which cluster it is can't be told.
    """
    if found.is_damaged:
        raise MigrationError(
            "the directory is damaged, and damage is not moved: `pulsar-py storage verify` names "
            "it, `pulsar-py storage recover` makes the best of it"
        )
    ledgers = {
        ledger_id: found.survey.ledgers[ledger_id].record.custom_metadata
        for ledger_id in sorted(found.survey.ledgers)
    }
    keys, sequences = found.metadata.keys, found.metadata.sequences
    name = cluster or own_cluster(keys, ledgers)
    largest = max(ledgers, default=0)
    return Contents(
        instance=keys.get(instance_id.PATH, b"").decode(),
        cluster=name,
        keys=moved(keys, name),
        ledgers=ledgers,
        store=SurveyedStore(disk, found.survey),
        settings=LedgerOptions(),
        next_ledger_id=max(largest + 1, sequences.get(paths.LEDGER_ID_COUNTER, 0)),
        next_producer_number=sequences.get(paths.PRODUCER_NAME_COUNTER, 0),
    )


@asynccontextmanager
async def _cluster_target(cluster: ClusterClients) -> AsyncIterator[MoveTarget]:
    await check_migration(cluster.metadata.local)
    name = cluster.cluster
    if not await cluster.metadata.configuration.exists(paths.cluster(name)):
        raise MigrationError(
            f"there is no cluster {name} at {cluster.address}: run pulsar-py "
            "initialize-cluster-metadata, and name it with --set clusterName=NAME"
        )
    async with cluster.ledgers() as store, _ids(cluster) as ledger_ids:
        assert isinstance(store, ChosenLedgers), "BookKeeper's client is one"
        yield MoveTarget(
            metadata=cluster.metadata,
            store=store,
            ledger_ids=ledger_ids,
            cluster=name,
            settings=cluster.ledger_options,
            address=cluster.address,
        )


@asynccontextmanager
async def _ids(cluster: ClusterClients) -> AsyncIterator[MetadataLedgerIds]:
    prefix = f"{cluster.ledgers_root}/idgen/ID-"
    ids = MetadataLedgerIds(cluster.bookkeeper_metadata, prefix)
    try:
        yield ids
    finally:
        await ids.close()


async def _carry_out(mover: Mover, output: str, *, is_dry_run: bool, on_begin: OnBegin) -> int:
    """Print the plan, and do it unless it is refused; returns the exit code."""
    plan = await mover.plan()
    outcome = "refused" if plan.problems else "planned"
    text = [*plan.lines(), *(f"refused: {each}" for each in plan.problems)]
    answer(output, {"outcome": outcome, **plan.as_json()}, "\n".join(text))
    if plan.problems:
        return 1
    if not is_dry_run and not plan.is_done:
        await mover.run(on_begin)
    return 0


# Out


async def export(data_dir: Path, options: Options, *, is_dry_run: bool) -> int:
    """Copy the cluster that the options name into a directory; returns the exit code."""
    clock = SystemClock()
    async with connected(options) as cluster, cluster.ledgers() as store, _ids(cluster) as ids:
        await check_no_move(cluster.metadata.local)
        contents = await read_cluster(
            cluster.metadata,
            store,
            ids,
            clock,
            cluster=cluster.cluster,
            settings=cluster.ledger_options,
        )
        if is_dry_run:
            counts = {"keys": len(contents.keys), "ledgers": len(contents.ledgers)}
            text = f"{counts['keys']} keys and {counts['ledgers']} ledgers"
            answer(options["output"], {"outcome": "planned", "counts": counts}, text)
            return 0
        async with _directory_target(data_dir, options["as_cluster"]) as target:
            with progress("exporting", None) as moved_bytes:
                mover = Mover(contents, target, clock, on_copied=moved_bytes)
                done = await _carry_out(
                    mover, options["output"], is_dry_run=False, on_begin=_nothing
                )
    if done == 0:
        name = options["as_cluster"]
        text = f"exported, and compared: pulsar-py standalone --data-dir {data_dir} starts it"
        if name != "standalone":
            text = f"{text}\nwith --set clusterName={name}"
        told = {"directory": str(data_dir), "cluster": name, "outcome": "exported"}
        answer(options["output"], told, text)
    return done


def _is_begun(data_dir: Path) -> bool:
    """Whether there is metadata in a directory; False for a new one.

    Raises:
        ConfigurationError: There is something else in it.
    """
    check_not_moved(data_dir)
    if (data_dir / FILE).exists():
        return True
    if data_dir.exists() and any(data_dir.iterdir()):
        raise ConfigurationError(f"{data_dir} is not empty: name a new directory")
    return False


async def _nothing() -> None:
    """A cluster that is exported goes on as before."""


@asynccontextmanager
async def _directory_target(data_dir: Path, cluster: str) -> AsyncIterator[MoveTarget]:
    """A new data directory, or one that an export was stopped in."""
    is_there = _is_begun(data_dir)
    clock = SystemClock()
    factory = EmbeddedLedgers(data_dir, bookie_settings(load_settings(None, ()), is_volatile=False))
    metadata = await EmbeddedMetadata(data_dir)(clock)
    async with OnFailureAwait(metadata.close):
        if is_there and await read_progress(metadata.local) is None:
            raise ConfigurationError(f"{data_dir} is a broker's already: name a new directory")
        ids = MetadataLedgerIds(metadata.local)
        store = await factory(metadata.local, ids, clock)
        try:
            assert isinstance(store, ChosenLedgers), "the embedded one is"
            yield MoveTarget(
                metadata=metadata,
                store=store,
                ledger_ids=ids,
                cluster=cluster,
                settings=LedgerOptions(),
                address=str(data_dir),
            )
        finally:
            await ids.close()
            await store.close()
    await metadata.close()
