"""The command `pulsar-py admin`: makes click commands of the tables, and runs them (edge).

A group's table is imported when one of its words is used, and a word's options are parsed then.

Exit codes: 0 done, 1 refused or failed, 2 a command line that is wrong.

Source: PulsarAdminTool in Pulsar's client tools.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import click

from pulsar_py.cli.admin import values
from pulsar_py.cli.admin.absent import ABSENT, absent_group
from pulsar_py.cli.admin.options import OUTPUTS, AdminOptions

if TYPE_CHECKING:
    from pulsar_py.cli.admin.words import Group, Option, Word

GROUPS: Final[Mapping[str, tuple[str, str]]] = {
    "tenants": ("tenants", "Tenants: who may administer, and where topics may be"),
    "namespaces": ("namespaces", "Namespaces: bundles, permissions and policies"),
    "topics": ("topics", "Topics: messages, subscriptions, statistics"),
    "topicPolicies": ("topic_policies", "Policies of topics"),
    "schemas": ("schemas", "Schemas of topics"),
    "brokers": ("brokers", "Brokers and their settings"),
    "broker-stats": ("brokers", "Statistics of brokers"),
    "clusters": ("clusters", "Clusters, their peers and failure domains"),
    "ns-isolation-policy": ("clusters", "Which brokers serve which namespaces"),
    "resourcegroups": ("tenants", "Rates that several namespaces share"),
    "resource-quotas": ("tenants", "What bundles are expected to take"),
    "bookies": ("tenants", "Bookies and their racks"),
    "transactions": ("brokers", "Transactions and their coordinators"),
    "persistent": ("deprecated", "Older name of topics"),
    "non-persistent": ("deprecated", "Older name of topics"),
    "destinations": ("deprecated", "Older name of topics"),
    "properties": ("deprecated", "Older name of tenants"),
}
"""The groups: where their tables are, and what they are about."""


class _Summaries(click.Group):
    """A group that lists its commands without making them."""

    def summaries(self) -> list[tuple[str, str]]:
        """The commands' names, each with its summary."""
        raise NotImplementedError

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands' names."""
        del ctx
        return [name for name, _ in self.summaries()]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command; a name that there is not brings the nearest ones."""
        name = args[0]
        if name.startswith("-") or ctx.resilient_parsing or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        from difflib import get_close_matches

        near = get_close_matches(name, self.list_commands(ctx))
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise click.UsageError(f"No such command {name!r}.{hint}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands' names and summaries."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(self.summaries())


class Groups(_Summaries):
    """`admin`: the groups of words."""

    def summaries(self) -> list[tuple[str, str]]:
        """The groups, each with its summary."""
        here = [(name, about) for name, (_, about) in GROUPS.items()]
        return here + [(name, "Not here; says why") for name in ABSENT]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A group, whose table is read now."""
        del ctx
        if cmd_name in ABSENT:
            return absent_group(cmd_name)
        if cmd_name not in GROUPS:
            return None
        return Words(cmd_name, words_of(cmd_name), help=GROUPS[cmd_name][1] + ".")


class Words(_Summaries):
    """One group of words."""

    def __init__(self, name: str, words: Group, **attributes: Any) -> None:  # Any: click's own
        """Make the commands of a table."""
        super().__init__(name, **attributes)
        self._words = words

    def summaries(self) -> list[tuple[str, str]]:
        """The commands that `--help` shows."""
        return [(name, word.summary) for name, word in self._words.items() if not word.is_hidden]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        del ctx
        word = self._words.get(cmd_name)
        return None if word is None else command_of(word)


def words_of(group: str) -> Group:
    """The table of a group."""
    module = import_module(f"pulsar_py.cli.admin.{GROUPS[group][0]}")
    found: Group = getattr(module, group.replace("-", "_").upper())
    return found


def command_of(word: Word) -> click.Command:
    """The click command for an entry of the table."""
    options = word.parsed_options()
    taken = {name for option in options for name in option.names}
    parameters: list[click.Parameter] = [
        click.Argument([name.rstrip("?")], required=not name.endswith("?"))
        for name in word.parameters.split()
    ]
    parameters += [_option(each) for each in options]
    parameters += [each for each in _common() if not taken & {*each.opts}]

    def run(**given: Any) -> None:  # Any: each option has its own type
        _run(word, given)

    return click.Command(
        word.name,
        params=parameters,
        callback=run,
        help=f"{word.summary}.",
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _common() -> list[click.Option]:
    """Options that each command has, unless one of its own has the name."""
    return [
        click.Option(
            ["-o", "--output", "--format", "common_output"],
            type=click.Choice(OUTPUTS),
            help="How the answer is printed; auto: a table on a terminal, otherwise text.",
        ),
        click.Option(
            ["-y", "--yes", "common_yes"], is_flag=True, help="Do not ask before destroying."
        ),
        click.Option(
            ["--dry-run", "common_dry_run"], is_flag=True, help="Only say what would be done."
        ),
        click.Option(
            ["-v", "--version", "common_version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            hidden=True,  # pulsar-admin's words have it, too; it is for `admin`
            callback=_say_version,
        ),
    ]


def _say_version(context: click.Context, _: click.Parameter, is_given: object) -> None:
    if is_given:
        from pulsar_py import __version__

        click.echo(f"pulsar-py, version {__version__}")
        context.exit()


class _Value(click.ParamType[Any]):
    """An option's value of one of our kinds."""

    def __init__(self, kind: str) -> None:
        self.name = kind

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:  # Any: of the kind
        """Parse a text; what is parsed already stays."""
        if not isinstance(value, str):
            return value
        try:
            return _PARSERS[self.name](value)
        except ValueError as error:
            return self.fail(str(error), param, ctx)


def _boolean(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is no whole number") from None


_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "text": str,
    "int": _integer,
    "long": _integer,
    "double": float,
    "bool": _boolean,
    "time": values.seconds,
    "millis": values.milliseconds,
    "size": values.size,
    "position": values.position,
    "list": str,
    "map": str,
    "longs": _integer,
    "pairs": str,
}
_MANY: Final = frozenset({"list", "map", "longs", "pairs"})


def _option(option: Option) -> click.Option:
    names = [*option.names, option.key]
    if option.kind == "flag":
        return click.Option(names, is_flag=True)
    more: dict[str, Any] = {}  # Any: each argument has its own type
    if option.default is not None:
        more = {"default": option.default, "show_default": True}
    kind: click.ParamType[Any] = _Value(option.kind)
    if option.kind.startswith("choice("):
        kind = click.Choice(option.kind[len("choice(") : -1].split(","), case_sensitive=False)
    else:
        more["metavar"] = option.kind.upper()
    return click.Option(
        names,
        type=kind,
        required=option.is_required,
        multiple=option.kind in _MANY,
        **more,
    )


def _run(word: Word, given: Mapping[str, Any]) -> None:
    """Send a command's calls and print the answer."""
    context = click.get_current_context()
    options: AdminOptions = context.find_object(AdminOptions) or AdminOptions({})
    options = replace(
        options,
        output=given.get("common_output") or options.output,
        is_confirmed=bool(given.get("common_yes")) or options.is_confirmed,
        is_dry_run=bool(given.get("common_dry_run")) or options.is_dry_run,
    )
    args = SimpleNamespace(**{name: _cooked(word, name, value) for name, value in given.items()})
    from pulsar_py.cli.admin.running import run_word  # HTTP, not for `--help`

    try:
        status = run_word(word, args, options)
    except ValueError as error:
        raise click.UsageError(str(error), context) from None
    if status:
        raise SystemExit(status)


def _cooked(word: Word, name: str, value: Any) -> Any:  # Any: as above
    """Lists split at commas and maps made of pairs."""
    if not isinstance(value, tuple) or name.startswith("common_"):
        return value
    kinds = {option.key: option.kind for option in word.parsed_options()}
    try:
        if kinds.get(name) == "list":
            return values.names(value)
        if kinds.get(name) == "pairs":
            return values.pairs(values.names(value))
        return values.pairs(value) if kinds.get(name) == "map" else list(value)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


@click.command(
    "admin",
    cls=Groups,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Administer a cluster, with the commands and options of pulsar-admin.",
)
@click.option("--admin-url", metavar="URL", help="A broker's HTTP address.")
@click.option("--auth-plugin", metavar="NAME", help="token, tls, basic, oauth2 or Java's name.")
@click.option(
    "--auth-params", metavar="PARAMS", help="Of the plugin; secrets by file:, env:, stdin:."
)
@click.option(
    "--request-timeout",
    type=click.IntRange(1),
    default=300,
    show_default=True,
    help="Seconds for a call.",
)
@click.option("--tls-allow-insecure", is_flag=True, default=None, help="Accept any certificate.")
@click.option("--tls-trust-cert-path", metavar="FILE", help="Authorities to trust, as PEM.")
@click.option(
    "--tls-enable-hostname-verification/--tls-disable-hostname-verification",
    default=None,
    help="Whether a certificate has to name the host.  [default: yes]",
)
@click.option("--tls-provider", hidden=True, help="Taken and not used: Python's ssl is.")
@click.option(
    "-o",
    "--output",
    "--format",
    "form",
    type=click.Choice(OUTPUTS),
    default="auto",
    help="How answers are printed; auto: tables on a terminal, otherwise text.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask before destroying.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.version_option(None, "-v", "--version", package_name="pulsar_py", prog_name="pulsar-py")
@click.pass_context
def admin(context: click.Context, /, **given: Any) -> None:  # Any: each option has its own type
    """Keep the options for the command that follows."""
    context.obj = AdminOptions(
        connection={
            "webServiceUrl": given["admin_url"],
            "authPlugin": given["auth_plugin"],
            "authParams": given["auth_params"],
            "tlsTrustCertsFilePath": given["tls_trust_cert_path"],
            "tlsAllowInsecureConnection": _flag(given["tls_allow_insecure"]),
            "tlsEnableHostnameVerification": _flag(given["tls_enable_hostname_verification"]),
        },
        request_timeout_seconds=given["request_timeout"],
        output=given["form"],
        is_confirmed=given["yes"],
        is_dry_run=given["dry_run"],
    )


def _flag(value: bool | None) -> str | None:  # noqa: FBT001 - a switch's value
    return None if value is None else str(value).lower()
