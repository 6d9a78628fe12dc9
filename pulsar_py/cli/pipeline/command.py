"""The commands of `pulsar-py pipeline`, which move data between topics and tables with Spark.

Here are the commands and their options; `jobs` does the work, and is imported when a
command runs, so that `--help` loads neither Spark nor Arrow. For spark-submit this module is the
main file.

Exit codes: 0 if the pipeline finished or was stopped by request, 1 if it failed, also after
restarts, 2 for wrong usage, which includes requests that the cluster refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from pulsar_py.cli.answering.answers import ANSWER

F = TypeVar("F", bound=Callable[..., object])
Decorator = Callable[[F], F]

ARGUMENTS: Final = "pulsar_py.pipeline.arguments"
"""The key in click's context of the words after `pipeline`, which --print-submit prints."""
DEFAULT_SERVICE_URL: Final = "pulsar://localhost:6650"


class PipelineGroup(click.Group):
    """A group that keeps the words it was called with."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words, then parse them."""
        ctx.meta[ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)


def _named(_: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise click.BadParameter("the name is empty", param=option)
    return value


def _together(*options: Callable[[Any], Any]) -> Callable[[F], F]:  # Any: click's decorators
    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


SESSION = _together(
    ANSWER,
    click.option("--master", help="Spark's master URL  [default: local[*], or spark-submit's]."),
    click.option(
        "--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark; may be repeated."
    ),
    click.option(
        "--print-submit",
        is_flag=True,
        help="Print the spark-submit line of this command, and do nothing else.",
    ),
    click.option(
        "--max-restarts",
        type=click.IntRange(min=0),
        help="Most restarts in a row after failures  [default: 3; no limit with --continuous; none"
        " for a batch that is sent exactly once and has no --name].",
    ),
)

CLUSTER = _together(
    click.option(
        "--service-url",
        envvar="PULSAR_SERVICE_URL",
        default=DEFAULT_SERVICE_URL,
        show_default=True,
    ),
    click.option(
        "--admin-url",
        envvar="PULSAR_ADMIN_URL",
        help="URL of the admin API  [default: http://localhost:8080 for the default service URL].",
    ),
    click.option(
        "--token",
        envvar="PULSAR_TOKEN",
        help="Token for authentication: file:PATH, env:NAME, or the token itself, which other users"
        " of the machine may see.",
    ),
    click.option(
        "--option",
        "connector_options",
        multiple=True,
        metavar="NAME=VALUE",
        help="Further option of the connector, such as pulsar.client.tlsTrustCertsFilePath; may be"
        " repeated.",
    ),
)

TARGET_CLUSTER = _together(
    click.option(
        "--to-service-url", help="Service URL of the target's cluster  [default: --service-url]."
    ),
    click.option("--to-admin-url", help="URL of its admin API."),
    click.option("--to-token", envvar="PULSAR_TO_TOKEN", help="Its token  [default: --token]."),
    click.option(
        "--guarantee",
        type=click.Choice(["exactly-once", "at-least-once"]),
        default="exactly-once",
        show_default=True,
        help="exactly-once needs deduplication on the target.",
    ),
    click.option("--binary-keys", is_flag=True, help="Send all keys as bytes, not as text."),
)


def _stream(checkpoint: str, continuous: str = "for ever") -> Callable[[F], F]:
    """The options of a stream.

    Args:
        checkpoint: The help of --checkpoint.
        continuous: The end of the help of --continuous.
    """
    return _together(
        click.option(
            "--once/--continuous",
            "is_once",
            default=True,
            show_default=True,
            help=f"Stop after the messages that exist now, or go on {continuous}.",
        ),
        click.option("--checkpoint", metavar="DIR", help=checkpoint),
        click.option(
            "--interval",
            default="60s",
            show_default=True,
            help="Between the starts of two micro-batches, with --continuous.",
        ),
        click.option(
            "--max-entries", type=click.IntRange(min=1), help="Most entries in a micro-batch."
        ),
        click.option("--max-bytes", metavar="SIZE", help="Most bytes in a micro-batch."),
    )


STREAM_TO_TABLE = _stream(
    "Directory of the stream's progress  [default: _checkpoint in the table's directory]."
)
STREAM_OR_BATCH = _stream(
    "Directory of the stream's progress. Without it the command is a batch, which reads all"
    " messages that exist each time.",
    "for ever, which needs --checkpoint",
)


def _range(*, required: bool = False) -> Callable[[F], F]:
    return _together(
        click.option(
            "--since",
            metavar="TIME",
            required=required,
            help="First publish time: 2026-01-31, 2026-01-31T10:00Z, 2h (before now), yesterday.",
        ),
        click.option(
            "--until",
            metavar="TIME",
            required=required,
            help="End of the publish times, exclusive: --since 2026-01-30 --until 2026-01-31 is one"
            " day. (The connector's endingTime is inclusive.)",
        ),
    )


RANGE = _range()

SELECTION = _together(
    click.option("--where", metavar="SQL", help="Condition for rows."),
    click.option("--select", metavar="SQL", help="Expressions for columns, separated by commas."),
)

LAKE = _together(
    click.option(
        "--partition-by",
        multiple=True,
        metavar="EXPR",
        help="Partition column: column, date(__publishTime), or name=SQL; may be repeated.",
    ),
    click.option(
        "--file-size",
        default="128MiB",
        show_default=True,
        help="Target size of files: larger ones are split, small ones merged.",
    ),
    click.option("--no-compaction", is_flag=True, help="Don't merge small files."),
)

TOPIC = click.option(
    "--topic", required=True, help="Topics, separated by commas, or pattern:REGEX."
)
RAW = click.option(
    "--raw", "is_raw", is_flag=True, help="Read values as bytes, whatever the schema."
)


PACKAGES: Final = {"pyarrow": "spark", "pyspark": "spark", "deltalake": "lake"}
"""Packages that a plain installation lacks, and the extra that brings each."""


@click.group(cls=PipelineGroup, context_settings={"help_option_names": ["-h", "--help"]})
def pipeline() -> None:
    """Move data between topics and tables with Spark, and measure it.

    Progress goes to stderr, failures too: bars and lines on a terminal, otherwise or with -o json
    one JSON object a line. Lines that Spark prints are events of it, too, unless spark-submit has
    started Java. With -o json the outcome is an object on stdout.
    """


def _run(name: str, options: Mapping[str, Any]) -> None:  # Any: click's values
    if missing := [each for each in _needed(name, options) if find_spec(each) is None]:
        extras = ",".join(dict.fromkeys(PACKAGES[each] for each in missing))
        raise click.ClickException(
            f"{name} needs {' and '.join(missing)}, not installed here: "
            f"pip install 'pulsar_py[{extras}]', in a checkout pip install '.[{extras}]'"
        )
    from pulsar_py.cli.pipeline.jobs import run

    arguments = click.get_current_context().meta[ARGUMENTS]
    raise SystemExit(run(name, options, arguments))


def _needed(name: str, options: Mapping[str, Any]) -> list[str]:
    """The packages of extras that a command line needs."""
    needed = ["pyarrow"]
    if name != "lag" and not options["print_submit"]:
        needed.append("pyspark")
    if any(str(options.get(each)).startswith("delta:") for each in ("source", "target", "to")):
        needed.append("deltalake")
    return needed


@pipeline.command()
@TOPIC
@click.option("--to", required=True, metavar="TABLE", help="parquet:PATH or delta:PATH.")
@STREAM_TO_TABLE
@LAKE
@RAW
@SELECTION
@click.option("--since", metavar="TIME", help="First publish time of a new export, as for copy.")
@click.option("--columns", multiple=True, help="Further metadata column, or all; may be repeated.")
@CLUSTER
@SESSION
def export(**options: Any) -> None:  # Any: click's values, here and below
    """Write topics into a table, each message once, and keep it in step."""
    _run("export", options)


@pipeline.command()
@click.option(
    "--topic",
    "--from",
    "topic",
    required=True,
    help="Topics, separated by commas, or pattern:REGEX.",
)
@click.option("--to", "target", required=True, help="Topic to write.")
@click.option(
    "--name",
    callback=_named,
    help="Name of a batch; running the same batch under the same name repeats it.",
)
@STREAM_OR_BATCH
@RANGE
@RAW
@SELECTION
@TARGET_CLUSTER
@CLUSTER
@SESSION
def copy(**options: Any) -> None:
    """Copy topics into another topic, also of another cluster."""
    _run("copy", options)


@pipeline.command()
@TOPIC
@click.option("--to", "target", required=True, help="Topic to write.")
@click.option(
    "--name", callback=_named, help="Name; the same replay under the same name repeats it."
)
@_range(required=True)
@RAW
@SELECTION
@TARGET_CLUSTER
@CLUSTER
@SESSION
def replay(**options: Any) -> None:
    """Write the messages of a time range into another topic again."""
    _run("replay", options)


@pipeline.command()
@click.option("--from", "source", required=True, metavar="TABLE", help="parquet: or delta:PATH.")
@click.option("--topic", "target", required=True, help="Topic to write.")
@click.option(
    "--name",
    required=True,
    callback=_named,
    help="Name; the same backfill under the same name repeats it.",
)
@click.option("--order-by", metavar="COLUMNS", help="Columns that order the rows of each key.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Most rows a second.")
@click.option(
    "--tasks",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Number of tasks; a repetition needs the same.",
)
@click.option(
    "--notes",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory of notes of first runs  [default: _backfill in the table's directory].",
)
@SELECTION
@TARGET_CLUSTER
@CLUSTER
@SESSION
def backfill(**options: Any) -> None:
    """Write a table into a topic; can be repeated."""
    _run("backfill", options)


@pipeline.command()
@TOPIC
@click.option("--to", "target", required=True, help="parquet:PATH, delta:PATH, or topic:NAME.")
@click.option(
    "--key",
    "keys",
    multiple=True,
    required=True,
    metavar="SQL",
    help="Column to group by, or expression as name; may be repeated.",
)
@click.option("--window", required=True, metavar="TIME", help="Length of windows, such as 1m.")
@click.option("--slide", metavar="TIME", help="Between the starts of windows  [default: --window].")
@click.option("--agg", required=True, metavar="SQL", help="Aggregates, such as count,sum(amount).")
@click.option(
    "--time",
    "time_column",
    default="__publishTime",
    show_default=True,
    help="Column with the time.",
)
@click.option("--watermark", default="1m", show_default=True, help="How late rows may be.")
@click.option("--where", metavar="SQL", help="Condition for rows.")
@STREAM_OR_BATCH
@LAKE
@TARGET_CLUSTER
@CLUSTER
@SESSION
def aggregate(**options: Any) -> None:
    """Aggregate messages by key and time window, with a watermark."""
    _run("aggregate", options)


@pipeline.command()
@TOPIC
@click.option("--to", "target", required=True, help="parquet:PATH, delta:PATH, or topic:NAME.")
@click.option(
    "--name", callback=_named, help="Name; the same compaction under the same name repeats it."
)
@RAW
@LAKE
@TARGET_CLUSTER
@CLUSTER
@SESSION
def compact(**options: Any) -> None:
    """Write the newest message of each key; a tombstone removes its key."""
    _run("compact", options)


@pipeline.command()
@click.option("--topic", "topics", multiple=True, help="Topic to measure; may be repeated.")
@click.option(
    "--namespace", "namespaces", multiple=True, help="Namespace to measure; may be repeated."
)
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Checkpoint of a stream; its offsets are compared with the ends of its topics.",
)
@click.option(
    "--to",
    "append_to",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File that gets the lags as further lines of JSON.",
)
@ANSWER
@CLUSTER
def lag(**options: Any) -> None:
    """Show backlog, age, rates and time to drain of subscriptions; needs no Spark.

    Backlogs and rates count entries, as brokers do: a producer's batch is one entry, however many
    messages it has. Topics without subscriptions have no line; --checkpoint shows the lag of a
    Spark query.

    Without --topic and --namespace the whole cluster is measured. Ages that its statistics do not
    have are read from messages, with --admin-url alone by lookups over HTTP.
    """
    _run("lag", options)


@pipeline.command()
@TOPIC
@click.option(
    "--to",
    "page",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="HTML file to write.",
)
@RANGE
@CLUSTER
@SESSION
def report(**options: Any) -> None:
    """Write an HTML page with plots of a topic's traffic."""
    _run("report", options)


if __name__ == "__main__":
    pipeline(prog_name="pulsar-py pipeline")
