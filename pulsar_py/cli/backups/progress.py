"""A bar on standard error for work that takes long, if that is a terminal (edge)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]


@contextmanager
def progress(
    what: str, total: float | None, *, is_bytes: bool = True
) -> Iterator[Callable[[float], None]]:
    """Show a bar while the context is open; the value moves it on by an amount.

    Args:
        what: A word for the work.
        total: The whole amount; None if nobody knows.
        is_bytes: Whether amounts are bytes, and the bar shows how many a second.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # 50 ms, for terminals alone
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    amounts = (DownloadColumn(), TransferSpeedColumn()) if is_bytes else (MofNCompleteColumn(),)
    columns = (TextColumn("{task.description}"), BarColumn(), *amounts, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda amount: bar.advance(task, amount)
