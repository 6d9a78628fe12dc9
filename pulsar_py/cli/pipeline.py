"""`pulsar-py pipeline`: topics and lakes, by Spark.

Only commands and options stand here; `pipeline_jobs` has the work and is imported when one runs, so
that `--help` loads neither Spark nor Arrow. Run by spark-submit this module is the main file.

Exit codes: 0 done, or stopped as asked; 1 failed, restarts included; 2 wrong usage, which includes
what the cluster refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., object])
Decorator = Callable[[F], F]

ARGUMENTS: Final = "pulsar_py.pipeline.arguments"
"""Where the words after `pipeline` are kept for --print-submit."""
DEFAULT_SERVICE_URL: Final = "pulsar://localhost:6650"


class PipelineGroup(click.Group):
    """Remembers what it was called with."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words, then as ever."""
        ctx.meta[ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)


def _named(_: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise click.BadParameter("it is empty", param=option)
    return value


def _together(*options: Callable[[Any], Any]) -> Callable[[F], F]:  # Any: click's decorators
    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


SESSION = _together(
    click.option("--master", help="Spark's master  [default: local[*], or spark-submit's]."),
    click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark."),
    click.option("--print-submit", is_flag=True, help="Print the spark-submit line, and end."),
    click.option(
        "--max-restarts",
        type=click.IntRange(min=0),
        help="Restarts in a row after failures  [default: 3; no limit with --continuous; none for"
        " a batch that is sent exactly once and has no --name].",
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
        help="HTTP URL  [default: http://localhost:8080 for the default service URL].",
    ),
    click.option(
        "--token",
        envvar="PULSAR_TOKEN",
        help="Token to authenticate with; better file:PATH or env:NAME, which others don't see.",
    ),
    click.option(
        "--option",
        "connector_options",
        multiple=True,
        metavar="NAME=VALUE",
        help="Further option of the connector, such as pulsar.client.tlsTrustCertsFilePath.",
    ),
)

TARGET_CLUSTER = _together(
    click.option("--to-service-url", help="Cluster of the target  [default: --service-url]."),
    click.option("--to-admin-url", help="Its HTTP URL."),
    click.option("--to-token", envvar="PULSAR_TO_TOKEN", help="Its token  [default: --token]."),
    click.option(
        "--guarantee",
        type=click.Choice(["exactly-once", "at-least-once"]),
        default="exactly-once",
        show_default=True,
        help="Exactly once needs deduplication on the target.",
    ),
    click.option("--binary-keys", is_flag=True, help="All keys are bytes, not texts."),
)


def _stream(checkpoint: str, continuous: str = "for ever") -> Callable[[F], F]:
    """Options of a stream; where it remembers how far it is differs."""
    return _together(
        click.option(
            "--once/--continuous",
            "is_once",
            default=True,
            show_default=True,
            help=f"Up to what is there now, or {continuous}.",
        ),
        click.option("--checkpoint", metavar="DIR", help=checkpoint),
        click.option(
            "--interval", default="60s", show_default=True, help="Between two continuous batches."
        ),
        click.option("--max-entries", type=click.IntRange(min=1), help="Entries a micro-batch."),
        click.option("--max-bytes", metavar="SIZE", help="Bytes a micro-batch."),
    )


STREAM_TO_TABLE = _stream(
    "Where it remembers how far it is  [default: _checkpoint in the table's directory]."
)
STREAM_OR_BATCH = _stream(
    "Where it remembers how far it is. Without one it is a batch, of all that is there each time.",
    "for ever, which needs --checkpoint",
)

RANGE = _together(
    click.option("--since", metavar="TIME", help="First publish time; 2026-01-31T10:00Z, -2h."),
    click.option(
        "--until",
        metavar="TIME",
        help="Publish time that is no longer read: --since 2026-01-30 --until 2026-01-31 is one"
        " day. The connector's endingTime is still read.",
    ),
)

SELECTION = _together(
    click.option("--where", metavar="SQL", help="Rows that are taken."),
    click.option("--select", metavar="SQL", help="Columns that are taken, or made."),
)

LAKE = _together(
    click.option(
        "--partition-by",
        multiple=True,
        metavar="EXPR",
        help="column, date(__publishTime), or name=SQL; may be repeated.",
    ),
    click.option(
        "--file-size",
        default="128MiB",
        show_default=True,
        help="What files should have: larger ones are split, small ones merged.",
    ),
    click.option("--no-compaction", is_flag=True, help="Leave small files as they are."),
)

TOPIC = click.option(
    "--topic", required=True, help="A topic, several with commas, or pattern:REGEX."
)
RAW = click.option("--raw", "is_raw", is_flag=True, help="Values are bytes, whatever the schema.")


@click.group(cls=PipelineGroup, context_settings={"help_option_names": ["-h", "--help"]})
def pipeline() -> None:
    """Move data between topics and lakes, and watch it, with Spark.

    Progress goes to stderr: bars on a terminal, otherwise one JSON object a line. What Spark prints
    is an event of it, too, unless spark-submit starts Java.
    """


def _run(name: str, options: Mapping[str, Any]) -> None:  # Any: click's values
    from pulsar_py.cli.pipeline_jobs import run  # noqa: PLC0415 - late on purpose

    arguments = click.get_current_context().meta[ARGUMENTS]
    raise SystemExit(run(name, options, arguments))


@pipeline.command()
@TOPIC
@click.option("--to", required=True, metavar="TABLE", help="parquet:PATH or delta:PATH.")
@STREAM_TO_TABLE
@LAKE
@RAW
@SELECTION
@click.option("--since", metavar="TIME", help="First publish time of a new export.")
@click.option("--columns", multiple=True, help="Further metadata columns, or all.")
@CLUSTER
@SESSION
def export(**options: Any) -> None:  # Any: click's values, here and below
    """Keep a table of a lake in step with a topic, each message once."""
    _run("export", options)


@pipeline.command()
@click.option("--from", "source", required=True, help="Topics to copy.")
@click.option("--to", "target", required=True, help="Topic to write.")
@click.option(
    "--name",
    callback=_named,
    help="Names a batch: under the same name it is the same one again.",
)
@STREAM_OR_BATCH
@RANGE
@RAW
@SELECTION
@TARGET_CLUSTER
@CLUSTER
@SESSION
def copy(**options: Any) -> None:
    """Copy a topic into another one, also of another cluster."""
    _run("copy", options)


@pipeline.command()
@TOPIC
@click.option("--from", "since", required=True, metavar="TIME", help="First publish time.")
@click.option(
    "--to",
    "until",
    required=True,
    metavar="TIME",
    help="Publish time that is no longer read: --from 2026-01-30 --to 2026-01-31 is one day. The"
    " connector's endingTime is still read.",
)
@click.option("--to-topic", "target", required=True, help="Topic to write.")
@click.option("--name", callback=_named, help="Under the same name it is the same replay again.")
@click.option("--where", metavar="SQL", help="Rows that are taken.")
@RAW
@TARGET_CLUSTER
@CLUSTER
@SESSION
def replay(**options: Any) -> None:
    """Write what was published in a range of time into another topic."""
    _run("replay", options)


@pipeline.command()
@click.option("--from", "source", required=True, metavar="TABLE", help="parquet: or delta:PATH.")
@click.option("--topic", "target", required=True, help="Topic to write.")
@click.option(
    "--name",
    required=True,
    callback=_named,
    help="Under the same name it is the same backfill again.",
)
@click.option("--order-by", metavar="COLUMNS", help="Order of the rows of each key.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Rows a second.")
@click.option("--tasks", type=click.IntRange(min=1), default=8, show_default=True)
@click.option(
    "--notes",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory that notes what ran first  [default: _backfill in the table's].",
)
@SELECTION
@TARGET_CLUSTER
@CLUSTER
@SESSION
def backfill(**options: Any) -> None:
    """Write a table of a lake into a topic; can be repeated."""
    _run("backfill", options)


@pipeline.command()
@TOPIC
@click.option("--to", "target", required=True, help="parquet:PATH, delta:PATH, or topic:NAME.")
@click.option("--key", "keys", multiple=True, required=True, metavar="SQL")
@click.option("--window", required=True, metavar="TIME", help="Length of windows, such as 1m.")
@click.option("--slide", metavar="TIME", help="Between the starts of windows  [default: --window].")
@click.option("--agg", required=True, metavar="SQL", help="Such as count,sum(amount).")
@click.option(
    "--time", "time_column", default="__publishTime", show_default=True, help="Column of the time."
)
@click.option("--watermark", default="1m", show_default=True, help="How late rows may be.")
@click.option("--where", metavar="SQL", help="Rows that are taken.")
@STREAM_OR_BATCH
@LAKE
@TARGET_CLUSTER
@CLUSTER
@SESSION
def aggregate(**options: Any) -> None:
    """Count and sum by key and window of time, with a watermark."""
    _run("aggregate", options)


@pipeline.command()
@TOPIC
@click.option("--to", "target", required=True, help="parquet:PATH, delta:PATH, or topic:NAME.")
@click.option(
    "--name", callback=_named, help="Under the same name it is the same compaction again."
)
@RAW
@LAKE
@TARGET_CLUSTER
@CLUSTER
@SESSION
def compact(**options: Any) -> None:
    """Write the newest message of each key; tombstones take their keys away."""
    _run("compact", options)


@pipeline.command()
@click.option("--topic", "topics", multiple=True, help="May be repeated.")
@click.option("--namespace", "namespaces", multiple=True, help="May be repeated.")
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Of a stream: compares its offsets with the ends of its topics.",
)
@click.option(
    "--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.option(
    "--to", "append_to", type=click.Path(path_type=Path, dir_okay=False), help="File of JSON lines."
)
@CLUSTER
def lag(**options: Any) -> None:
    """Show backlog, age, rates and time to drain of subscriptions; needs no Spark.

    Backlogs and rates count entries, as brokers do: a batch of a producer is one entry, however
    many messages it has. Topics without subscriptions have no line; --checkpoint shows how far a
    query of Spark is behind.

    Without --topic and --namespace: of the whole cluster.
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
    """Write a page with plots of a topic's traffic."""
    _run("report", options)


if __name__ == "__main__":
    pipeline(prog_name="pulsar-py pipeline")
