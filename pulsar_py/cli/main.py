"""The command `pulsar-py`: its subcommands and their options.

Each subcommand's work is in a module of its own, which is imported when the subcommand runs. So
`--help` and the start of a broker load only what they use.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from click.core import ParameterSource

from pulsar_py.cli.admin.command import admin
from pulsar_py.cli.client.command import client
from pulsar_py.cli.cluster import initialize_cluster_metadata, ledger, metadata, migrate
from pulsar_py.cli.context import context
from pulsar_py.cli.perf.command import perf
from pulsar_py.cli.pipeline.command import pipeline
from pulsar_py.cli.security.secure import secure
from pulsar_py.cli.security.tokens import tokens
from pulsar_py.cli.storage.command import storage
from pulsar_py.cli.watching.doctor import doctor, subscription
from pulsar_py.cli.watching.drain import drain
from pulsar_py.cli.watching.support_bundle import support_bundle
from pulsar_py.cli.watching.tail import tail
from pulsar_py.cli.watching.top import top

HOST = click.option("--host", help="Address to listen on  [default: the setting bindAddress].")
PORT = click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port of the binary protocol; 0 takes a free one. It is that of TLS where the settings "
    "open no other (brokerServicePort is empty), else that in clear text.",
)
WEB_PORT = click.option(
    "--web-port",
    type=click.IntRange(0, 65535),
    help="Port of HTTP; 0 takes a free one. It is that of HTTPS where the settings open no other "
    "(webServicePort is empty), else that in clear text.",
)
CONFIG = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File of settings in the form of broker.conf, one NAME=VALUE a line.",
)
OVERRIDES = click.option(
    "--set", "overrides", metavar="NAME=VALUE", multiple=True, help="A setting; may be repeated."
)
LOG_FORMAT = click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True
)
LOG_LEVEL = click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
    default="INFO",
    show_default=True,
)


@contextmanager
def collecting_nothing() -> Iterator[None]:
    """Load modules without the cyclic garbage collector.

    What they make stays, and looking through it again and again takes a fifth of a broker's start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pulsar_py", prog_name="pulsar-py")
def main() -> None:
    """Run and administer a broker that speaks Apache Pulsar's protocols."""


@main.command()
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("data"),
    show_default=True,
    help="Directory for all data; created if missing.",
)
@click.option(
    "--in-memory",
    is_flag=True,
    help="Store nothing on disk; all data is lost when the broker ends.",
)
@HOST
@PORT
@WEB_PORT
@CONFIG
@OVERRIDES
@LOG_FORMAT
@LOG_LEVEL
@click.option(
    "--ready",
    "ready_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the line on standard output that says when all ports answer, and where.",
)
def standalone(
    *,
    data_dir: Path,
    in_memory: bool,
    host: str | None,
    port: int | None,
    web_port: int | None,
    config_file: Path | None,
    overrides: tuple[str, ...],
    log_format: str,
    log_level: str,
    ready_format: str,
) -> None:
    """Run a broker until it gets SIGTERM or SIGINT.

    A setting in an environment variable PULSAR_PREFIX_NAME overrides the one in --config, and
    --set overrides both.
    """
    context = click.get_current_context()
    if in_memory and context.get_parameter_source("data_dir") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--in-memory and --data-dir exclude each other; give one")

    with collecting_nothing():
        from pulsar_py.cli.standalone import StandaloneOptions, run

    options = StandaloneOptions(
        data_dir=None if in_memory else data_dir,
        host=host,
        port=port,
        web_port=web_port,
        config_file=config_file,
        overrides=overrides,
        log_format=log_format,
        log_level=log_level.upper(),
        is_ready_json=ready_format == "json",
    )
    raise SystemExit(run(options))


@main.group(invoke_without_command=True)
@CONFIG
@OVERRIDES
@HOST
@PORT
@WEB_PORT
@LOG_FORMAT
@LOG_LEVEL
@click.pass_context
def broker(
    context: click.Context,
    *,
    config_file: Path | None,
    overrides: tuple[str, ...],
    host: str | None,
    port: int | None,
    web_port: int | None,
    log_format: str,
    log_level: str,
) -> None:
    """Run a broker on ZooKeeper and BookKeeper until it gets SIGTERM or SIGINT, or act on one.

    Without a command it runs. It keeps nothing itself. The cluster has to be initialized before
    (initialize-cluster-metadata). A setting in an environment variable PULSAR_PREFIX_NAME overrides
    the one in --config, and --set overrides both.
    """
    if context.invoked_subcommand is not None:
        return
    with collecting_nothing():
        from pulsar_py.cli.broker import ClusterBrokerOptions, run

    options = ClusterBrokerOptions(
        config_file=config_file,
        overrides=overrides,
        host=host,
        port=port,
        web_port=web_port,
        log_format=log_format,
        log_level=log_level.upper(),
    )
    raise SystemExit(run(options))


@main.command("compact-topic")
@click.option("--topic", "-t", required=True, help="The topic, with or without partitions.")
@click.option(
    "--web-service-url",
    default="http://localhost:8080",
    show_default=True,
    help="A broker's HTTP address.",
)
@click.option(
    "--timeout",
    "timeout_seconds",
    type=click.FloatRange(0),
    default=3600.0,
    show_default=True,
    help="Seconds to wait for the end; 0 does not wait.",
)
def compact_topic(*, topic: str, web_service_url: str, timeout_seconds: float) -> None:
    """Keep the newest message of each key of a topic, for readers that ask for those.

    The broker does it; this command calls it over HTTP and waits.
    """
    import asyncio

    from pulsar_py.cli import compaction
    from pulsar_py.common.errors import PulsarError

    request = compaction.CompactionRequest(web_service_url, topic, timeout_seconds)
    try:
        asyncio.run(compaction.compact_topic(request))
    except (PulsarError, compaction.CompactionFailedError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{topic}: compacted" if timeout_seconds else f"{topic}: compaction begun")


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(*, shell: str) -> None:
    """Print what makes a shell complete our words and options.

    For bash: eval "$(pulsar-py completion bash)", in ~/.bashrc.
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None, "click has all of them"
    click.echo(made(main, {}, "pulsar-py", "_PULSAR_PY_COMPLETE").source())


main.add_command(admin)
main.add_command(client)
main.add_command(context)
broker.add_command(drain)
main.add_command(initialize_cluster_metadata)
main.add_command(ledger)
main.add_command(metadata)
main.add_command(migrate)
main.add_command(perf)
main.add_command(pipeline)
main.add_command(secure)
main.add_command(storage)
main.add_command(doctor)
main.add_command(subscription)
main.add_command(support_bundle)
main.add_command(tail)
main.add_command(top)
main.add_command(tokens)
