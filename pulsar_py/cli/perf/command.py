"""The commands `pulsar-py perf produce|consume|read|latency` and their options (edge).

Source: PulsarPerfTestTool in Pulsar's test client.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from errno import EPIPE
from typing import TYPE_CHECKING, Any

import click

from pulsar_py.cli.admin.values import size
from pulsar_py.cli.answering.answers import JSON, output_option

if TYPE_CHECKING:
    from pulsar_py.cli.connecting.connection import Connection

Function = Callable[..., None]
_NO_TRANSACTIONS = "transactions are not here"
_OF_TRANSACTIONS = ("numMessage_perTransaction", "txn_timeout", "number_txn", "abort")
_FORMS = ("text", JSON)
_COMPRESSIONS = ("NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def perf() -> None:
    """Put a load on a broker, and measure it."""


def _with(*options: Callable[[Function], Function]) -> Callable[[Function], Function]:
    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


class _CountOrForm(click.IntRange):
    """A count; or, as `-o` means the form of the answer elsewhere, that."""

    def __init__(self) -> None:
        super().__init__(0)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:  # Any: click's
        """The number, or the form's name, which `_run` takes for what it is."""
        return value if value in _FORMS else super().convert(value, param, ctx)


# fmt: off
_COMMON = _with(
    click.argument("topic"),
    click.option("-u", "--service-url", metavar="URL", help="A broker's address."),
    click.option("--auth-plugin", metavar="NAME", help="token, tls, basic, oauth2."),
    click.option("--auth-params", metavar="PARAMS", help="Secrets by file:, env: or stdin:."),
    click.option("--trust-cert-file", metavar="FILE", help="Authorities to trust, as PEM."),
    click.option("--listener-name", metavar="NAME", help="Of the listener that lookups name."),
    click.option("-c", "--max-connections", type=click.IntRange(1), default=1, show_default=True,
                 help="To each broker."),
    click.option("-ml", "--memory-limit", metavar="SIZE", help="For messages that wait."),
    click.option("-i", "--stats-interval-seconds", type=click.FloatRange(0.1), default=10.0,
                 show_default=True, help="Between two lines."),
    click.option("-cf", "--conf-file", metavar="FILE", help="In place of PULSAR_CLIENT_CONF."),
    click.option("-t", "--num-topics", type=click.IntRange(1), default=1, show_default=True),
    click.option("-ioThreads", "--num-io-threads", type=click.IntRange(1), default=1,
                 help="Taken for scripts' sake: there is one event loop."),
    click.option("-bw", "--busy-wait", is_flag=True, help="Taken for scripts' sake, as that."),
    click.option("-time", "--test-duration", type=click.FloatRange(0), default=0.0,
                 help="Seconds; 0: no bound."),
    click.option("--histogram-file", type=click.Path(dir_okay=False, writable=True),
                 help="Write all percentiles of the latency there, as CSV."),
)
_ANSWER = output_option()
_ANSWER_BESIDE = output_option(names=["--output", "--format"])
_SENDING = _with(
    click.option("-r", "--rate", type=click.FloatRange(0), default=100.0, show_default=True,
                 help="Messages a second in all; 0: as many as possible."),
    click.option("-s", "--size", type=click.IntRange(0), default=1024, show_default=True),
    click.option("-n", "--num-producers", type=click.IntRange(1), default=1, show_default=True,
                 help="Of each topic."),
    click.option("-o", "--max-outstanding", type=_CountOrForm(), default=0, metavar="COUNT",
                 help="Messages of a producer without a receipt; 0: 1000. `-o json` means "
                 "--output json, as in other commands."),
    click.option("-p", "--max-outstanding-across-partitions", type=click.IntRange(0), default=0,
                 help="The same for all partitions of a topic together; 0: 50000."),
    click.option("-threads", "--num-test-threads", type=click.IntRange(1), default=1,
                 help="Taken for scripts' sake: there is one event loop."),
    click.option("-np", "--partitions", type=click.IntRange(0),
                 help="Create the topics first, with so many; 0: without."),
    click.option("-au", "--admin-url", metavar="URL", help="Where they are created."),
    click.option("--separator", default="-", show_default=True,
                 help="Between a topic's name and its number, with -t."),
    click.option("-z", "--compression", type=click.Choice(_COMPRESSIONS, case_sensitive=False),
                 default="NONE", show_default=True),
    click.option("-db", "--disable-batching", is_flag=True, help="Send each message by itself."),
    click.option("-b", "--batch-time-window", type=click.FloatRange(0.1), default=1.0,
                 show_default=True, help="Milliseconds that a batch waits."),
    click.option("-bm", "--batch-max-messages", type=click.IntRange(1), default=1000,
                 show_default=True),
    click.option("-bb", "--batch-max-bytes", type=click.IntRange(1), default=4194304,
                 show_default=True),
    click.option("-ch", "--chunking", is_flag=True, help="Divide messages that are too large."),
    click.option("-d", "--delay", type=click.FloatRange(0), default=0.0,
                 help="Seconds after which messages are delivered."),
    click.option("-dr", "--delay-range", metavar="FROM,TO",
                 help="Seconds too, chosen anew for each message."),
    click.option("-set", "--set-event-time", is_flag=True, help="Set the event time."),
    click.option("-f", "--payload-file", type=click.Path(exists=True, dir_okay=False),
                 help="A file with payloads, which are sent in turn."),
    click.option("-e", "--payload-delimiter", default="\\n", show_default=True,
                 help="Between the payloads of that file."),
    click.option("-fp", "--format-payload", is_flag=True,
                 help="Put the message's number for %i in payloads, for %t nanoseconds."),
    click.option("-k", "--encryption-key-name", help="Name of the key for encryption."),
    click.option("-v", "--encryption-key-value-file", metavar="FILE", help="Public key, as PEM."),
    click.option("-am", "--access-mode", default="Shared", show_default=True,
                 type=click.Choice(["Shared", "Exclusive", "WaitForExclusive",
                                    "ExclusiveWithFencing"])),
    click.option("-mk", "--message-key-generation-mode",
                 type=click.Choice(["autoIncrement", "random"]), help="Give each message a key."),
    click.option("-pn", "--producer-name", help="Followed by a number if there are several."),
    click.option("--send-timeout", type=click.FloatRange(0), default=0.0,
                 help="Seconds after which a message fails; 0: never."),
    click.option("-ef", "--exit-on-failure", is_flag=True,
                 help="End at the first message that fails, not at the end of the run."),
    click.option("--warmup-time", type=click.FloatRange(0), default=0.0, show_default=True,
                 help="Seconds from the start whose latencies are not counted."),
)
_RECEIVING = _with(
    click.option("-q", "--receiver-queue-size", type=click.IntRange(1), default=1000,
                 show_default=True),
    click.option("-mc", "--max-chunked-msg", type=click.IntRange(0), default=10,
                 help="Messages whose chunks are kept at a time."),
    click.option("-ac", "--auto-ack-chunk-q-full", is_flag=True,
                 help="Acknowledge the oldest of those if there are more."),
)
_TRANSACTIONS = _with(
    click.option("-txn", "--txn-enable", is_flag=True, help="Not here: no transactions."),
    *(click.option(*names, hidden=True)
      for names in (("-nmt", "--numMessage-perTransaction"), ("-tto", "--txn-timeout"),
                    ("-ntxn", "--number-txn"))),
    click.option("-abort", is_flag=True, hidden=True),
)
_COUNT = click.option("-m", "--num-messages", type=click.IntRange(0), default=0,
                      help="How many in all; 0: no bound.")
# fmt: on


@perf.command()
@_COMMON
@_ANSWER_BESIDE
@_SENDING
@_TRANSACTIONS
@_COUNT
def produce(**given: Any) -> None:  # Any: each option has its own type
    """Publish at a rate."""
    _run("produce", given)


@perf.command()
@_COMMON
@_ANSWER
@_RECEIVING
@_TRANSACTIONS
@_COUNT
@click.option("-n", "--num-consumers", type=click.IntRange(1), default=1, show_default=True)
@click.option("-ss", "--subscriptions", default="sub", show_default=True, help="Between commas.")
@click.option(
    "-st",
    "--subscription-type",
    type=click.Choice(["Exclusive", "Shared", "Failover", "Key_Shared"]),
    default="Exclusive",
    show_default=True,
)
@click.option(
    "-sp",
    "--subscription-position",
    type=click.Choice(["Latest", "Earliest"]),
    default="Latest",
    show_default=True,
)
@click.option("-r", "--rate", type=click.FloatRange(0), default=0.0,
              help="Messages a second of each consumer; 0: as many as possible.")  # fmt: skip
@click.option("-ns", "--num-subscriptions", type=click.IntRange(1), default=1, show_default=True,
              help="More than one: with numbers behind the first name.")  # fmt: skip
@click.option("--acks-delay-millis", type=click.IntRange(0), default=100, show_default=True,
              help="Milliseconds that acknowledgements wait for others.")  # fmt: skip
@click.option("--batch-index-ack", is_flag=True, help="Acknowledge within batches.")
@click.option("-p", "--receiver-queue-size-across-partitions", type=click.IntRange(1),
              default=50000, show_default=True)  # fmt: skip
@click.option("-aq", "--auto-scaled-receiver-queue-size", is_flag=True,
              help="Not here: the queue has the size of -q.")  # fmt: skip
@click.option("-e", "--expire_time_incomplete_chunked_messages", type=click.IntRange(0), default=0,
              help="Milliseconds that chunks wait for the rest of theirs; 0: ever.")  # fmt: skip
@click.option("-pm", "--pool-messages", is_flag=True, help="Taken for scripts' sake.")
@click.option("-rs", "--replicated", is_flag=True, help="Replicate the subscriptions.")
@click.option("-ekv", "--encryption-key-value-file", metavar="FILE", help="Private key, as PEM.")
def consume(**given: Any) -> None:  # Any: as above
    """Receive and acknowledge."""
    _run("consume", given)


@perf.command()
@_COMMON
@_ANSWER
@_RECEIVING
@click.option("-m", "--start-message-id", default="earliest", show_default=True)
@click.option("-n", "--num-messages", type=click.IntRange(0), default=0, help="0: no bound.")
@click.option("-r", "--rate", type=click.FloatRange(0), default=0.0,
              help="Messages a second; 0: as many as possible.")  # fmt: skip
def read(**given: Any) -> None:  # Any: as above
    """Read from a message on."""
    _run("read", given)


@perf.command()
@_COMMON
@_ANSWER_BESIDE
@_SENDING
@_RECEIVING
@_COUNT
def latency(**given: Any) -> None:  # Any: as above
    """Publish and receive at once, for the latency from end to end."""
    _run("latency", {**given, "subscription_type": "Exclusive", "subscription_position": "Latest"})


@perf.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@click.argument("ignored", nargs=-1, type=click.UNPROCESSED)
def transaction(ignored: tuple[str, ...]) -> None:
    """Not here: there are no transactions."""
    del ignored
    raise click.ClickException(_NO_TRANSACTIONS)


def _refuse_what_is_not_here(given: dict[str, Any]) -> None:
    if given.get("txn_enable") or any(given.get(each) for each in _OF_TRANSACTIONS):
        raise click.ClickException(_NO_TRANSACTIONS)
    if given.get("auto_scaled_receiver_queue_size"):
        raise click.ClickException("-aq: a receiver queue does not grow by itself here; use -q")


def _run(name: str, given: dict[str, Any]) -> None:
    import asyncio

    from pulsar_py.cli.connecting.connection import connection
    from pulsar_py.cli.connecting.contexts import ContextError
    from pulsar_py.cli.perf import loads
    from pulsar_py.common.errors import PulsarError

    _refuse_what_is_not_here(given)
    if given.get("max_outstanding") in _FORMS:
        given = {**given, "output": given["max_outstanding"], "max_outstanding": 0}
    job: Callable[[Connection, Any, Any], Any] = getattr(loads, name)
    environment = dict(os.environ)
    if given["conf_file"]:
        environment["PULSAR_CLIENT_CONF"] = given["conf_file"]
    options: dict[str, Any] = {"connections_per_broker": given["max_connections"]}
    try:
        if given["listener_name"]:
            options["listener_name"] = given["listener_name"]
        if given["memory_limit"]:
            options["memory_limit_bytes"] = size(given["memory_limit"])
        where = connection(
            {
                "brokerServiceUrl": given["service_url"],
                "authPlugin": given["auth_plugin"],
                "authParams": given["auth_params"],
                "tlsTrustCertsFilePath": given["trust_cert_file"],
                "webServiceUrl": given.get("admin_url"),
            },
            environment,
        )
        asyncio.run(job(where, options, given))
    except* ValueError as group:  # values that click does not know
        raise click.UsageError("; ".join(map(str, group.exceptions))) from None
    except* BrokenPipeError:
        raise BrokenPipeError(EPIPE, "nobody reads the output") from None  # click ends quietly
    except* (PulsarError, ContextError, OSError) as group:
        raise click.ClickException("; ".join(map(str, group.exceptions))) from None
    except* KeyboardInterrupt:
        raise SystemExit(130) from None
