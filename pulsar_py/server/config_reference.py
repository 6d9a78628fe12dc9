"""Generates the sample files and the reference page of all settings from their declarations.

`conf/standalone.conf` is for a broker that keeps everything itself, `conf/broker.conf` for one on
ZooKeeper and BookKeeper; each leaves out what only the other has.

`python -m pulsar_py.server.config_reference` writes all below the working directory; `make docs`
calls it, and a test fails when they are stale.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final

from pulsar_py.server.config import RENAMED, BrokerConfig
from pulsar_py.server.ignored_settings import IgnoredSetting, ignored_settings
from pulsar_py.server.settings.cluster import CLUSTER_CATEGORIES
from pulsar_py.server.settings.declaring import Setting
from pulsar_py.server.settings.storage import BOOKIE

CONF_PATH: Final = Path("conf/standalone.conf")
CLUSTER_CONF_PATH: Final = Path("conf/broker.conf")
REFERENCE_PATH: Final = Path("docs/SETTINGS.md")
_LINE_LENGTH: Final = 100
_COMMENTED_OUT: Final = frozenset({"bindAddress"})
"""Settings without a value of their own: an empty one is not what a line without it would say."""


def render_conf() -> str:
    """The text of `conf/standalone.conf`: every setting at its default, but those of clusters."""
    return _render_conf("a broker", left_out=CLUSTER_CATEGORIES, given={})


def render_cluster_conf() -> str:
    """The text of `conf/broker.conf`: every setting but those of the bookie within a broker.

    All are at their defaults but the name of the cluster, which has none there.
    """
    return _render_conf(
        "a broker on ZooKeeper and BookKeeper",
        left_out=frozenset({BOOKIE}),
        given={"clusterName": ""},
    )


def _render_conf(of_what: str, *, left_out: frozenset[str], given: Mapping[str, str]) -> str:
    is_of_cluster = not left_out & CLUSTER_CATEGORIES
    lines = [
        *_comment(
            f"Settings of {of_what} at their defaults, named as in Apache Pulsar's broker.conf. "
            "Made from the declarations in pulsar_py/server/settings/*.py by `make docs`."
        ),
        *_comment(
            "Each can also be set by an environment variable PULSAR_PREFIX_<name>, or by --set "
            "NAME=VALUE. A `dynamic` one can be changed while the broker runs."
        ),
    ]
    for category, settings in _by_category():
        if category in left_out:
            continue
        lines += ["", f"### {category}"]
        for setting in settings:
            lines += ["", *_comment(_description(setting))]
            line = f"{setting.name}={given.get(setting.name, setting.render(setting.default))}"
            lines.append(f"#{line}" if setting.name in _COMMENTED_OUT else line)
    if is_of_cluster:
        lines += ["", "### Fixed", "", *_comment("Any other value is refused, with the reason.")]
        lines += _commented_out(is_of_cluster=True)
    lines += ["", "### Without effect", ""]
    lines += _comment("Taken so that a file of Apache Pulsar's loads; none changes anything here.")
    if not is_of_cluster:
        lines += _commented_out(is_of_cluster=True)
    lines += _commented_out(is_of_cluster=False)
    return "\n".join(lines) + "\n"


def _commented_out(*, is_of_cluster: bool) -> Iterator[str]:
    for reason, ignored in _by_reason(is_of_cluster=is_of_cluster):
        yield ""
        yield from _comment(reason)
        yield from (f"#{each.name}={each.default}" for each in ignored)


def render_reference() -> str:
    """The text of `docs/SETTINGS.md`."""
    lines = [
        "# Settings",
        "",
        "Made from the declarations in `pulsar_py/server/settings/*.py` by `make docs`.",
        "",
        "Names are those of Apache Pulsar's `broker.conf`. Values come, each later one over the",
        "earlier, from the defaults, the file given with `--config` (Java's properties format),",
        "environment variables `PULSAR_PREFIX_<name>` (and `<name>` alone for names that stand in",
        "the file), and `--set NAME=VALUE`. An unknown name is an error.",
    ]
    for category, settings in _by_category():
        lines += [
            "",
            f"## {category}",
            "",
            "| setting | default | meaning |",
            "| --- | --- | --- |",
        ]
        for setting in settings:
            default = setting.render(setting.default)
            shown = f"`{default}`" if default else "*empty*"
            lines.append(f"| `{setting.name}` | {shown} | {_description(setting)} |")
    lines += ["", "## Old names", "", "| old | new |", "| --- | --- |"]
    lines += [f"| `{old}` | `{new}` |" for old, (new, _) in sorted(RENAMED.items())]
    lines += ["", "## Without effect", ""]
    lines.append("Taken so that a file of Apache Pulsar's loads; none changes anything here.")
    refused = sorted(name for name, each in ignored_settings().items() if each.is_protection)
    lines.append(
        "Refused unless they have the default or are empty, because whoever sets them relies on "
        f"what is not there: {', '.join(f'`{name}`' for name in refused)}."
    )
    lines += _named(is_of_cluster=False)
    lines += ["", "## Fixed in a cluster", ""]
    lines.append("A standalone broker takes them, too, and none changes anything there.")
    lines.append("`pulsar-py broker` refuses any value but the default or an empty one.")
    lines += _named(is_of_cluster=True)
    return "\n".join(lines) + "\n"


def _named(*, is_of_cluster: bool) -> Iterator[str]:
    for reason, ignored in _by_reason(is_of_cluster=is_of_cluster):
        yield ""
        yield f"**{reason}** " + ", ".join(f"`{each.name}`" for each in ignored)


def main() -> None:
    """Write all files."""
    for path, text in (
        (CONF_PATH, render_conf()),
        (CLUSTER_CONF_PATH, render_cluster_conf()),
        (REFERENCE_PATH, render_reference()),
    ):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _by_category() -> Iterator[tuple[str, list[Setting]]]:
    """Categories in the order they were declared first, their settings likewise."""
    categories: dict[str, list[Setting]] = {}
    for setting in BrokerConfig.declared().values():
        categories.setdefault(setting.category, []).append(setting)
    yield from categories.items()


def _by_reason(*, is_of_cluster: bool) -> Iterator[tuple[str, Iterable[IgnoredSetting]]]:
    ignored = [
        each
        for each in BrokerConfig.settings_without_effect().values()
        if each.is_of_cluster == is_of_cluster
    ]
    yield from groupby(ignored, key=lambda each: each.reason)


def _description(setting: Setting) -> str:
    words = [setting.doc]
    bounds = _bounds(setting)
    if bounds:
        words.append(f"({bounds})")
    if setting.choices or not isinstance(setting.default, bool | int | float | str | None):
        words.append(f"[{setting.describe_type()}]")
    if setting.is_dynamic:
        words.append("(dynamic)")
    return " ".join(words)


def _bounds(setting: Setting) -> str:
    if setting.minimum is not None and setting.maximum is not None:
        return f"{setting.minimum} to {setting.maximum}"
    if setting.minimum is not None:
        return f"at least {setting.minimum}"
    return f"at most {setting.maximum}" if setting.maximum is not None else ""


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, _LINE_LENGTH - 2)]


if __name__ == "__main__":
    main()
