"""`LateGroup`: a group whose commands' modules are imported when one of them is used.

`--help` lists the commands by the summaries that stand with their names, so it imports none of
them, and a command does not pay for its neighbours.
"""

from __future__ import annotations

from importlib import import_module

import click


class LateCommand(click.Command):
    """The place of a command whose module is not imported yet."""

    def __init__(self, name: str, home: str, summary: str) -> None:
        """`home` is its place, as `package.module:attribute`."""
        super().__init__(name, short_help=summary)
        self._home = home

    def load(self) -> click.Command:
        """The command itself."""
        module, _, attribute = self._home.partition(":")
        found: click.Command = getattr(import_module(module), attribute)
        return found


class LateGroup(click.Group):
    """A group with commands that are there, and commands that come when they are used."""

    def add_late(self, name: str, home: str, summary: str) -> None:
        """Add a command by its place, `package.module:attribute`."""
        self.add_command(LateCommand(name, home, summary))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported by now."""
        found = super().get_command(ctx, cmd_name)
        if isinstance(found, LateCommand):
            found = self.commands[cmd_name] = found.load()
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands' names and summaries, without importing the commands."""
        names = self.list_commands(ctx)
        room = formatter.width - 6 - max(map(len, names))
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._summary(name, room)) for name in names])

    def _summary(self, name: str, room: int) -> str:
        return self.commands[name].get_short_help_str(room)
