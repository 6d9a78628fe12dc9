"""Commands for a cluster on ZooKeeper and BookKeeper: setting it up, moving in, looking into it.

Here are the commands and their options; `cluster_setup_jobs`, `migration_jobs`, `ledger_jobs` and
`metadata_jobs` do the work, and are imported when a command runs. Those that look change nothing.
Exit codes: 0, or 1 with the reason; 2 for wrong usage.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from pulsar_py.cli.answering.answers import ANSWER, TABLE

F = TypeVar("F", bound=Callable[..., Any])  # Any: click commands take what their options give


def _places(command: F) -> F:
    """The options that say where ZooKeeper and BookKeeper are."""
    for option in (
        click.option(
            "--bookkeeper-metadata-service-uri",
            "bookkeeper_uri",
            help="Where BookKeeper's metadata is  [default: /ledgers in the metadata store].",
        ),
        click.option("--metadata-store", help="ZooKeeper, as zk:HOST:PORT,HOST:PORT/chroot."),
        click.option(
            "--set",
            "overrides",
            metavar="NAME=VALUE",
            multiple=True,
            help="A setting; may be repeated.",
        ),
        click.option(
            "--config",
            "config_file",
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
            help="The brokers' file of settings, which says where both are.",
        ),
    ):
        command = option(command)
    return command


@click.command("initialize-cluster-metadata")
@click.option("-c", "--cluster", required=True, help="Cluster name.")
@click.option("-md", "--metadata-store", required=True, help="ZooKeeper, as zk:HOST:PORT/chroot.")
@click.option(
    "-cms",
    "--configuration-metadata-store",
    "-cs",
    "--configuration-store",
    "configuration_store",
    required=True,
    help="The ZooKeeper that all clusters share; may be the same.",
)
@click.option(
    "-mscp",
    "--metadata-store-config-path",
    help="A file with properties of ZooKeeper's clients, for TLS and SASL.",
)
@click.option(
    "-cmscp",
    "--configuration-metadata-store-config-path",
    help="The same for the shared ZooKeeper.",
)
@click.option(
    "--zk-enable-security",
    is_flag=True,
    help="Nobody but who made a node may read or change it, as with zkEnableSecurity.",
)
@click.option("-uw", "--web-service-url", required=True, help="HTTP address of the new cluster.")
@click.option("-tw", "--web-service-url-tls", help="The same with TLS.")
@click.option("-ub", "--broker-service-url", help="Address of the new cluster for clients.")
@click.option("-tb", "--broker-service-url-tls", help="The same with TLS.")
@click.option("-te", "--tls-enable", is_flag=True, help="Brokers reach the new cluster over TLS.")
@click.option("--auth-plugin", help="The plugin by which brokers authenticate there.")
@click.option("--auth-parameters", help="What that plugin needs.")
@click.option("-pu", "--proxy-url", help="A proxy before the new cluster.")
@click.option(
    "-pp", "--proxy-protocol", type=click.Choice(["SNI"]), help="How that proxy is spoken to."
)
@click.option(
    "--existing-bk-metadata-service-uri",
    "existing_bookkeeper",
    help="BookKeeper is there already, and has its metadata here; nothing is written for it.",
)
@click.option(
    "-bn",
    "--default-namespace-bundle-number",
    "bundles_count",
    type=click.IntRange(min=0),
    default=0,
    help="Bundles of public/default; 0 is 16.",
)
@click.option(
    "--initial-num-transaction-coordinators",
    "coordinators_count",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    help="Transaction coordinators of the cluster; brokers of Apache Pulsar's run them.",
)
@click.option(
    "--initial-num-stream-storage-containers",
    type=int,
    default=16,
    help="Taken, and without effect: functions, which would use them, are not served.",
)
@click.option(
    "--zookeeper-session-timeout-ms",
    "session_millis",
    type=click.IntRange(min=1),
    default=30_000,
    show_default=True,
)
@TABLE
def initialize_cluster_metadata(**options: Any) -> None:  # Any: each option has its own type
    """Write what the brokers of a new cluster expect in ZooKeeper.

    What is there already stays; doing it again does no harm. The layout of BookKeeper's metadata
    is left to the first bookie.
    """
    from pulsar_py.cli.cluster_setup_jobs import initialize
    from pulsar_py.cli.places import run

    raise SystemExit(run(initialize(options)))


@click.command()
@click.argument("data_dir", metavar="DIR", type=click.Path(path_type=Path))
@_places
@click.option("--dry-run", is_flag=True, help="Print what it would do, and what it would refuse.")
@click.option(
    "--renumber",
    "is_renumbered",
    is_flag=True,
    help="Into a cluster that has ledgers: give those that are moved other ids.",
)
@click.option(
    "--existing",
    type=click.Choice(["refuse", "keep", "replace"]),
    default="refuse",
    show_default=True,
    help="What happens to policies that the cluster has, too, and that differ; in a cluster "
    "without ledgers they are replaced.",
)
@click.option("--source-cluster", help="The name of the cluster in DIR, where it can't be told.")
@click.option("--export", "is_export", is_flag=True, help="The other way: the cluster into DIR.")
@click.option(
    "--as-cluster",
    default="standalone",
    show_default=True,
    help="With --export: the clusterName of the broker that will start in DIR.",
)
@click.option(
    "--release", is_flag=True, help="Let a broker start in DIR again, from which all was moved."
)
@ANSWER
def migrate(
    *,
    data_dir: Path,
    dry_run: bool,
    is_export: bool,
    release: bool,
    **options: Any,  # Any: each option has its own type
) -> None:
    """Move all of a stopped `standalone` in DIR into a cluster, or with --export back.

    The cluster's brokers are stopped, too. Ledgers with their messages, subscriptions with what
    they have acknowledged, schemas, policies, tenants and permissions are copied and compared; DIR
    stays as it is, and no broker starts there any more. What was stopped in the middle goes on when
    it is called again.
    """
    from pulsar_py.cli import migration_jobs as jobs
    from pulsar_py.cli.places import run

    if release:
        raise SystemExit(run(jobs.release(data_dir, options["output"])))
    if is_export and options["is_renumbered"]:
        raise click.UsageError("--export makes a new directory, in which all ids are kept")
    if not is_export and not data_dir.is_dir():
        raise click.UsageError(f"{data_dir} is no directory")
    work = jobs.export if is_export else jobs.move_in
    raise SystemExit(run(work(data_dir, options, is_dry_run=dry_run)))


@click.group()
def ledger() -> None:
    """Look at the ledgers on BookKeeper; nothing is changed or fenced."""


@ledger.command("list")
@_places
@TABLE
def list_ledgers(output: str, **places: Any) -> None:  # Any: each option has its own type
    """All ledgers, whoever they belong to."""
    from pulsar_py.cli.ledger_jobs import list_all
    from pulsar_py.cli.places import look

    raise SystemExit(look(places, lambda cluster: list_all(cluster, output)))


@ledger.command("info")
@click.argument("ledger_id", type=click.IntRange(min=0))
@_places
@TABLE
def ledger_info(ledger_id: int, output: str, **places: Any) -> None:  # Any: as above
    """One ledger: state, last entry, quorums, labels, and which bookies have it."""
    from pulsar_py.cli.ledger_jobs import info
    from pulsar_py.cli.places import look

    raise SystemExit(look(places, lambda cluster: info(cluster, ledger_id, output)))


@ledger.command("read")
@click.argument("ledger_id", type=click.IntRange(min=0))
@click.option("--first", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--last", type=click.IntRange(min=0), help="[default: the last one]")
@click.option(
    "--bytes",
    "shown_bytes",
    type=click.IntRange(min=0),
    default=32,
    show_default=True,
    help="Bytes of each entry to print, in hexadecimal.",
)
@_places
@TABLE
def read_ledger(
    ledger_id: int,
    first: int,
    last: int | None,
    shown_bytes: int,
    output: str,
    **places: Any,  # Any: as above
) -> None:
    """Entries of one ledger, up to the last one that is confirmed."""
    from pulsar_py.cli.ledger_jobs import read
    from pulsar_py.cli.places import look

    raise SystemExit(
        look(places, lambda cluster: read(cluster, ledger_id, (first, last), shown_bytes, output))
    )


@ledger.command()
@_places
@TABLE
def orphans(output: str, **places: Any) -> None:  # Any: as above
    """Ledgers of Pulsar's that no topic, cursor or schema names; they are not deleted.

    Where clusters share a BookKeeper, those of the others are among them: look at the column.
    One that was created a moment ago may be among them: its name is written afterwards.
    """
    from pulsar_py.cli.ledger_jobs import find_orphans
    from pulsar_py.cli.places import look

    raise SystemExit(look(places, lambda cluster: find_orphans(cluster, output)))


@click.group()
def metadata() -> None:
    """Look at what is in ZooKeeper; nothing is changed."""


@metadata.command("ls")
@click.argument("path", default="/")
@click.option("-R", "--recursive", is_flag=True, help="All below, by their whole paths.")
@_places
@TABLE
def metadata_ls(path: str, output: str, *, recursive: bool, **places: Any) -> None:  # Any: as above
    """The names below PATH."""
    from pulsar_py.cli.metadata_jobs import ls
    from pulsar_py.cli.places import look

    raise SystemExit(
        look(places, lambda cluster: ls(cluster, path, output, is_recursive=recursive))
    )


@metadata.command("get")
@click.argument("path")
@click.option("--raw", is_flag=True, help="The bytes as they are.")
@_places
@TABLE
def metadata_get(path: str, output: str, *, raw: bool, **places: Any) -> None:  # Any: as above
    """The value at PATH: JSON indented, other text as it is, anything else in hexadecimal."""
    from pulsar_py.cli.metadata_jobs import get
    from pulsar_py.cli.places import look

    raise SystemExit(look(places, lambda cluster: get(cluster, path, output, is_raw=raw)))


@metadata.command("stat")
@click.argument("path")
@_places
@TABLE
def metadata_stat(path: str, output: str, **places: Any) -> None:  # Any: as above
    """Version, times, size, children and owner of PATH."""
    from pulsar_py.cli.metadata_jobs import stat
    from pulsar_py.cli.places import look

    raise SystemExit(look(places, lambda cluster: stat(cluster, path, output)))
