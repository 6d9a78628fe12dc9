"""Commands of pulsar-admin for features that are not there: each says so, and exits with 1 (pure).

The words are known, and take any options, so that a script learns the reason rather than that the
word is unknown.

Source: CmdFunctions, CmdSources, CmdSinks, CmdPackages, CmdFunctionWorker, CmdProxyStats and
CmdGenerateDocument in Pulsar's client tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

_FUNCTIONS: Final = (
    "no functions worker runs here, as in a broker that is started without one; run them beside "
    "Apache Pulsar, or as programs that use a client"
)
_PROXY: Final = "there is no proxy here; broker-stats shows the connections of a broker"
_PACKAGES: Final = "packages are of functions and connectors, which are not run here"
_DOCUMENTS: Final = "it writes Apache Pulsar's own pages about pulsar-admin; --help has the words"

_FUNCTION_WORDS: Final = (
    "localrun create delete update get restart stop start status stats list querystate putstate "
    "trigger upload download available-functions reload"
)
_WORKER_WORDS: Final = (
    "function-stats monitoring-metrics get-cluster get-cluster-leader get-function-assignments "
    "rebalance"
)
_CONNECTOR_WORDS: Final = "create delete get list localrun reload restart start status stop update"
_PACKAGE_WORDS: Final = "get-metadata update-metadata upload download list list-versions delete"

ABSENT: Final[Mapping[str, tuple[str, str]]] = {
    "functions": (_FUNCTIONS, _FUNCTION_WORDS),
    "functions-worker": (_FUNCTIONS, _WORKER_WORDS),
    "sources": (_FUNCTIONS, f"available-sources {_CONNECTOR_WORDS}"),
    "sinks": (_FUNCTIONS, f"available-sinks {_CONNECTOR_WORDS}"),
    "source": (_FUNCTIONS, f"available-sources {_CONNECTOR_WORDS}"),
    "sink": (_FUNCTIONS, f"available-sinks {_CONNECTOR_WORDS}"),
    "packages": (_PACKAGES, _PACKAGE_WORDS),
    "proxy-stats": (_PROXY, "connections topics"),
    "documents": (_DOCUMENTS, "generate"),
}
"""By group: why it is not here, and its words."""


def absent_group(name: str) -> click.Group:
    """A group that only says why it is not here."""
    reason, words = ABSENT[name]
    made = click.Group(name, help=f"Not here: {reason}.")
    for word in words.split():
        made.add_command(_absent_word(f"{name} {word}", word, reason))
    return made


def _absent_word(title: str, name: str, reason: str) -> click.Command:
    def say(**_: object) -> None:
        click.echo(f"Error: {title}: {reason}", err=True)
        raise SystemExit(1)

    return click.Command(
        name,
        callback=say,
        params=[click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED)],
        help=f"Not here: {reason}.",
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
        add_help_option=False,
    )
