"""The commands `pulsar-py client produce|consume|read` and their options (edge).

Exit codes: 0 done, 1 refused or failed, 2 a command line that is wrong.

Source: PulsarClientTool, CmdProduce, CmdConsume and CmdRead in Pulsar's client tools.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from pulsar_py.cli.admin.values import names as names_of
from pulsar_py.cli.admin.values import pairs, size
from pulsar_py.cli.answering.answers import ANSWER

if TYPE_CHECKING:
    from pulsar_py.cli.connecting.connection import Connection

Decorator = Callable[[Callable[..., None]], Callable[..., None]]

TYPES: Final = ("Exclusive", "Shared", "Failover", "Key_Shared")
MODES: Final = ("Durable", "NonDurable")
POSITIONS: Final = ("Latest", "Earliest")
_CRYPTO: Final = ("FAIL", "DISCARD", "CONSUME")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--url", metavar="URL", help="A broker's address.")
@click.option("--proxy-url", hidden=True)
@click.option("--proxy-protocol", hidden=True)
@click.option("--auth-plugin", metavar="NAME", help="token, tls, basic, oauth2 or Java's name.")
@click.option("--auth-params", metavar="PARAMS", help="Secrets by file:, env: or stdin:.")
@click.option("--listener-name", metavar="NAME", help="Of the listener that lookups name.")
@click.option("--tlsTrustCertsFilePath", "trust", metavar="FILE", help="Authorities to trust.")
@click.option("-ml", "--memory-limit", metavar="SIZE", help="For messages that wait; 0: no limit.")
@click.pass_context
def client(context: click.Context, /, **given: Any) -> None:  # Any: each option has its own type
    """Publish, consume and read messages."""
    if given["proxy_url"] or given["proxy_protocol"]:
        raise click.ClickException(
            "a proxy by SNI is not supported: leave the option out, and give a broker's URL"
        )
    context.obj = given


def common(function: Callable[..., None]) -> Callable[..., None]:
    """Options of `consume` and `read`."""
    options = [
        click.option("-n", "--num-messages", default=1, show_default=True,
                     help="How many; 0: until it is interrupted."),
        click.option("--hex", "is_hex", is_flag=True, help="Show contents in hexadecimal."),
        click.option("--hide-content", is_flag=True, help="Show no contents."),
        click.option("-r", "--rate", default=0.0, help="At most so many a second; 0: no bound."),
        click.option("-q", "--queue-size", default=0, help="Messages to fetch ahead; 0: 1000."),
        click.option("-mc", "--max_chunked_msg", default=0,
                     help="Messages in chunks that may be incomplete at a time; 0: 10."),
        click.option("-ac", "--auto_ack_chunk_q_full", is_flag=True,
                     help="Acknowledge the oldest of them where there are more."),
        click.option("-ekv", "--encryption-key-value", metavar="FILE", help="Private key, as PEM."),
        click.option("-ca", "--crypto-failure-action", type=click.Choice(_CRYPTO), default="FAIL"),
        click.option("-st", "--schema-type", type=click.Choice(["bytes", "string", "auto_consume"]),
                     default="bytes", show_default=True, help="How contents are shown."),
        click.option("-pm", "--pool-messages", type=bool, default=True, hidden=True),
        click.option("-mp", "--print-metadata", is_flag=True, help="Show what else a message has."),
        ANSWER,
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


@client.command()
@click.argument("topic")
@click.option("-m", "--messages", multiple=True, help="Contents, between separators.")
@click.option("-f", "--files", multiple=True, help="Files with a content each, between commas.")
@click.option("-n", "--num-produce", type=click.IntRange(1), default=1, help="How often to send.")
@click.option("-r", "--rate", default=0.0, help="At most so many a second; 0: no bound.")
@click.option("-db", "--disable-batching", is_flag=True, help="Send each message by itself.")
@click.option("-c", "--chunking", is_flag=True, help="Divide messages that are too large.")
@click.option("-s", "--separator", default=",", show_default=True, help="Empty: do not separate.")
@click.option("-p", "--properties", multiple=True, metavar="KEY=VALUE", help="Of each message.")
@click.option("-k", "--key", help="Of each message.")
@click.option("-kvk", "--key-value-key", help="The key of a pair of key and value.")
@click.option("-kvkf", "--key-value-key-file", help="A file with that key.")
@click.option("-vs", "--value-schema", default="bytes", help="bytes, string, avro:DEF, json:DEF.")
@click.option("-ks", "--key-schema", default="string", help="The same for the key of a pair.")
@click.option("-kvet", "--key-value-encoding-type", type=click.Choice(["inline", "separated"]))
@click.option("-ekn", "--encryption-key-name", help="Name of the key for encryption.")
@click.option("-ekv", "--encryption-key-value", metavar="FILE", help="Public key, as PEM.")
@click.option("-dr", "--disable-replication", is_flag=True, help="Keep messages in this cluster.")
@ANSWER
def produce(**given: Any) -> None:  # Any: each option has its own type
    """Publish messages."""
    if not given["messages"] and not given["files"]:
        raise click.UsageError("Please supply message content with either --messages or --files")
    try:
        given["properties"] = pairs(names_of(given["properties"]))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    from pulsar_py.cli.client import producing

    _run(producing.produce, given)


@client.command()
@click.argument("topic")
@click.option("-s", "--subscription-name", required=True, help="Of the subscription.")
@click.option("-t", "--subscription-type", type=click.Choice(TYPES), default="Exclusive",
              show_default=True)  # fmt: skip
@click.option("-m", "--subscription-mode", type=click.Choice(MODES), default="Durable",
              show_default=True)  # fmt: skip
@click.option("-p", "--subscription-position", type=click.Choice(POSITIONS), default="Latest",
              show_default=True, help="Where a new subscription begins.")  # fmt: skip
@click.option("--regex", is_flag=True, help="The topic is a pattern.")
@click.option("-rs", "--replicated", is_flag=True, help="Replicate the subscription.")
@click.option("-stp", "--start-timestamp", default=0, help="Leave out what is older (ms).")
@click.option("-etp", "--end-timestamp", default=2**63 - 1, help="End after what is newer (ms).")
@common
def consume(**given: Any) -> None:  # Any: each option has its own type
    """Consume messages, and acknowledge them."""
    from pulsar_py.cli.client import receiving

    _run(receiving.consume, given)


@client.command()
@click.argument("topic")
@click.option("-m", "--start-message-id", default="latest", show_default=True,
              help="latest, earliest or LEDGER:ENTRY.")  # fmt: skip
@click.option("-i", "--start-message-id-inclusive", is_flag=True, help="Show that message, too.")
@common
def read(**given: Any) -> None:  # Any: each option has its own type
    """Read messages; leaves no subscription behind."""
    from pulsar_py.cli.client import receiving

    _run(receiving.read, given)


def _run(job: Callable[[Connection, Any, dict[str, Any]], Any], given: dict[str, Any]) -> None:
    """Run a job of the loop, and end with its errors as one line."""
    import asyncio

    from pulsar_py.cli.connecting.connection import connection
    from pulsar_py.cli.connecting.contexts import ContextError
    from pulsar_py.common.errors import PulsarError

    outer = click.get_current_context().obj or {}
    try:
        where = connection(
            {
                "brokerServiceUrl": outer.get("url"),
                "authPlugin": outer.get("auth_plugin"),
                "authParams": outer.get("auth_params"),
                "tlsTrustCertsFilePath": outer.get("trust"),
            },
            os.environ,
        )
        options: dict[str, Any] = {}  # Any: each has its own type
        if outer.get("listener_name"):
            options["listener_name"] = outer["listener_name"]
        if outer.get("memory_limit"):
            options["memory_limit_bytes"] = size(outer["memory_limit"])
        asyncio.run(job(where, options, given))
    except ValueError as error:  # a value that click does not know
        raise click.UsageError(str(error)) from None
    except BrokenPipeError:
        raise  # whoever read the output has enough, and click ends quietly
    except (PulsarError, ContextError, OSError) as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
