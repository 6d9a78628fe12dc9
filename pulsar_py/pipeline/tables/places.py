"""Paths of tables and checkpoints, parsed from the texts of options (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pulsar_py.common.errors import ConfigurationError


class TableFormat(Enum):
    """The log of a table: that of Delta Lake, or one of our own beside plain Parquet files."""

    PARQUET = "parquet"
    DELTA = "delta"


@dataclass(frozen=True, slots=True)
class Target:
    """The format and absolute path of a table, written `parquet:PATH` or `delta:PATH`."""

    format: TableFormat
    path: Path

    @classmethod
    def parse(cls, text: str) -> Target:
        """Parse `parquet:PATH` or `delta:PATH`; the path may be a `file:` URL.

        Raises:
            ConfigurationError: The format is unknown, or the path is a URL of another kind.
        """
        kind, _, place = text.partition(":")
        is_known = kind in {each.value for each in TableFormat}
        try:
            url = urlsplit(place if is_known else text)
        except ValueError as error:
            raise ConfigurationError(f"{text!r}: {error}") from None
        if url.scheme not in {"", "file"} and (is_known or url.netloc):
            raise ConfigurationError(
                f"{text!r}: expected parquet:PATH or delta:PATH on a local or shared file system:"
                " files get their names by renaming, which object stores can't do"
            )
        if not is_known or not place:
            raise ConfigurationError(f"{text!r}: expected parquet:PATH or delta:PATH")
        path = local_path(place)
        assert path is not None, "URLs with other schemes were refused above"
        return cls(TableFormat(kind), path.absolute())

    def __str__(self) -> str:
        return f"{self.format.value}:{self.path}"


def local_path(place: str) -> Path | None:
    """The path of a plain path or a `file:` URL; None for URLs with other schemes."""
    url = urlsplit(place)
    if url.scheme not in {"", "file"}:
        return None
    return Path(unquote(url.path) if url.scheme else place)


def spark_place(place: str) -> str:
    """A path or URL in the form that Spark takes: nothing in a `file:` URL is percent-encoded."""
    path = local_path(place) if urlsplit(place).scheme == "file" else None
    return place if path is None else f"file://{path.absolute()}"
