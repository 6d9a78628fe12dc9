"""`pulsar-py`: the commands and their options, nothing else.

Each command's work stands in a module of its own that is imported when the command runs, so that
`--help` and the start of a broker pay only for what they use.
"""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from pulsar_py.cli.pipeline import pipeline
from pulsar_py.cli.storage import storage


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
    help="Directory for everything that is stored; made if missing.",
)
@click.option("--in-memory", is_flag=True, help="Store nothing on disk; everything ends with it.")
@click.option("--host", help="Address to listen on [default: bindAddress].")
@click.option("--port", type=click.IntRange(0, 65535), help="Binary port, 0 for a free one.")
@click.option("--web-port", type=click.IntRange(0, 65535), help="HTTP port, 0 for a free one.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File with settings of broker.conf, one NAME=VALUE a line.",
)
@click.option(
    "--set", "overrides", metavar="NAME=VALUE", multiple=True, help="One setting; may be repeated."
)
@click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
    default="INFO",
    show_default=True,
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
) -> None:
    """Run a broker until it gets SIGTERM or SIGINT.

    Settings come from --config, then from environment variables PULSAR_PREFIX_NAME, then
    from --set.
    """
    context = click.get_current_context()
    if in_memory and context.get_parameter_source("data_dir") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--in-memory and --data-dir exclude one another")

    from pulsar_py.cli.standalone import StandaloneOptions, run  # noqa: PLC0415 - late on purpose

    options = StandaloneOptions(
        data_dir=None if in_memory else data_dir,
        host=host,
        port=port,
        web_port=web_port,
        config_file=config_file,
        overrides=overrides,
        log_format=log_format,
        log_level=log_level.upper(),
    )
    raise SystemExit(run(options))


main.add_command(pipeline)
main.add_command(storage)
