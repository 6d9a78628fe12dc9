"""The subcommands of `pulsar-py` and their options.

Each subcommand's work is in a module of its own, which is imported when the subcommand runs. Most
have their options elsewhere, too (`LATE`). So `--help` and the start of a broker load only what
they use.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from pulsar_py.cli.late_commands import LateGroup

HOST = click.option("--host", help="Address to listen on  [default: the setting bindAddress].")
PORT = click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port of the binary protocol (--web-port is that of HTTP); 0 takes a free one. It is "
    "that of TLS where the settings open no other (brokerServicePort is empty), else that in "
    "clear text.",
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


@click.group(cls=LateGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pulsar_py", prog_name="pulsar-py")
def main() -> None:
    """Run and administer a broker that speaks Apache Pulsar's protocols."""


READY = click.option(
    "--ready",
    "ready_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the line on standard output that says when all ports answer, and where.",
)


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
@READY
@click.option(
    "--ready-too",
    "ready_too",
    default="",
    hidden=True,
    help="A further line then, for programs that wait for one of Apache Pulsar's.",
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
    ready_too: str,
) -> None:
    """Run a broker until it gets SIGTERM or SIGINT.

    A setting in an environment variable PULSAR_PREFIX_NAME overrides the one in --config, and
    --set overrides both.
    """
    context = click.get_current_context()
    if in_memory and context.get_parameter_source("data_dir") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--in-memory and --data-dir exclude each other; give one")

    from pulsar_py.common.late_imports import importing_for_good

    with importing_for_good():
        from pulsar_py.cli.standalone import run
        from pulsar_py.cli.standalone_options import StandaloneOptions

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
        ready_too=ready_too,
    )
    raise SystemExit(run(options))


@click.group(cls=LateGroup, invoke_without_command=True)
@CONFIG
@OVERRIDES
@HOST
@PORT
@WEB_PORT
@LOG_FORMAT
@LOG_LEVEL
@READY
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
    ready_format: str,
) -> None:
    """Run a broker on ZooKeeper and BookKeeper until it gets SIGTERM or SIGINT, or act on one.

    Without a command it runs. It keeps nothing itself. The cluster has to be initialized before
    (initialize-cluster-metadata). A setting in an environment variable PULSAR_PREFIX_NAME overrides
    the one in --config, and --set overrides both.
    """
    if context.invoked_subcommand is not None:
        return
    from pulsar_py.common.late_imports import importing_for_good

    with importing_for_good():
        from pulsar_py.cli.broker import ClusterBrokerOptions, run

    options = ClusterBrokerOptions(
        config_file=config_file,
        overrides=overrides,
        host=host,
        port=port,
        web_port=web_port,
        log_format=log_format,
        log_level=log_level.upper(),
        is_ready_json=ready_format == "json",
    )
    raise SystemExit(run(options))


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(*, shell: str) -> None:
    r"""Print what makes a shell complete our words and options.

    \b
    bash, in ~/.bashrc:  eval "$(pulsar-py completion bash)"
    zsh, in ~/.zshrc after compinit:  eval "$(pulsar-py completion zsh)"
    fish:  pulsar-py completion fish > ~/.config/fish/completions/pulsar-py.fish
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None, "click has all of them"
    click.echo(made(main, {}, "pulsar-py", "_PULSAR_PY_COMPLETE").source())


LATE: Final[Mapping[str, tuple[str, str]]] = {
    "admin": (
        "admin.command:admin",
        "Administer a cluster, with the commands and options of pulsar-admin.",
    ),
    "client": ("client.command:client", "Publish, consume and read messages."),
    "compact-topic": (
        "compaction:command",
        "Keep the newest message of each key of a topic, for readers that ask for those.",
    ),
    "context": ("context:context", "Keep the addresses and credentials of clusters under names."),
    "doctor": (
        "watching.doctor:doctor",
        (
            "Say why SUBSCRIPTION does not move and which command helps, or what is wrong with a "
            "broker."
        ),
    ),
    "initialize-cluster-metadata": (
        "cluster:initialize_cluster_metadata",
        "Write what the brokers of a new cluster expect in ZooKeeper.",
    ),
    "ledger": (
        "cluster:ledger",
        "Look at the ledgers on BookKeeper; nothing is changed or fenced.",
    ),
    "metadata": ("cluster:metadata", "Look at what is in ZooKeeper; nothing is changed."),
    "migrate": (
        "cluster:migrate",
        "Move all of a stopped `standalone` in DIR into a cluster, or with --export back.",
    ),
    "perf": ("perf.command:perf", "Put a load on a broker, and measure it."),
    "pipeline": (
        "pipeline.command:pipeline",
        "Move data between topics and tables with Spark, and measure it.",
    ),
    "secure": ("security.secure:secure", "Set up a broker with TLS, tokens and authorization."),
    "storage": (
        "storage.command:storage",
        "Back up a running broker, and look after the data directory of a stopped one.",
    ),
    "subscription": (
        "watching.doctor:subscription",
        "Stop the dispatch of a subscription, and let it go on.",
    ),
    "support-bundle": (
        "watching.support_bundle:support_bundle",
        "Write a broker's state into an archive FILE (.tar.gz), without secrets and payloads.",
    ),
    "tail": (
        "watching.tail:tail",
        "Show messages of TOPICS as they come; nothing is acknowledged, and nothing left behind.",
    ),
    "tokens": (
        "security.tokens:tokens",
        "Make keys and tokens for AuthenticationProviderToken, and look at tokens.",
    ),
    "top": (
        "watching.top:top",
        "Show the busiest topics, subscriptions or connections of a broker.",
    ),
}
"""Commands by name: where they are below `pulsar_py.cli`, and what `--help` says of them."""

main.add_command(broker)
for _name, (_home, _about) in LATE.items():
    main.add_late(_name, f"pulsar_py.cli.{_home}", _about)
broker.add_late(
    "drain",
    "pulsar_py.cli.watching.drain:drain",
    "Have the broker of --admin-url hand its topics over to others, before it is stopped.",
)
