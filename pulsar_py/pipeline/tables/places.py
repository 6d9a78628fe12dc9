"""Where tables and checkpoints lie: texts of options as paths (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pulsar_py.common.errors import ConfigurationError


class TableFormat(Enum):
    """Whose log a table has."""

    PARQUET = "parquet"
    DELTA = "delta"


@dataclass(frozen=True, slots=True)
class Target:
    """A table, as `parquet:path` or `delta:path`."""

    format: TableFormat
    path: Path

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read its text.

        Raises:
            ConfigurationError: The format is unknown, or the path is not one of this machine.
        """
        kind, _, place = text.partition(":")
        is_known = kind in {each.value for each in TableFormat}
        try:
            url = urlsplit(place if is_known else text)
        except ValueError as error:
            raise ConfigurationError(f"{text!r}: {error}") from None
        if url.scheme not in {"", "file"} and (is_known or url.netloc):
            raise ConfigurationError(
                f"{text!r}: what is needed is parquet:PATH or delta:PATH on a local or shared file"
                " system: files are put in place by renaming, which object stores can't"
            )
        if not is_known or not place:
            raise ConfigurationError(f"{text!r} is neither parquet:PATH nor delta:PATH")
        path = local_path(place)
        assert path is not None, "its scheme was looked at"
        return cls(TableFormat(kind), path.absolute())

    def __str__(self) -> str:
        return f"{self.format.value}:{self.path}"


def local_path(place: str) -> Path | None:
    """A path, given as such or as a `file:` URL; None for URLs of what is no file system here."""
    url = urlsplit(place)
    if url.scheme not in {"", "file"}:
        return None
    return Path(unquote(url.path) if url.scheme else place)


def spark_place(place: str) -> str:
    """A path or URL as Spark takes it: that of a file has nothing in it encoded."""
    path = local_path(place) if urlsplit(place).scheme == "file" else None
    return place if path is None else f"file://{path.absolute()}"
