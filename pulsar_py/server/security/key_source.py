"""Keys and password files that settings name, read again when their file changed (edge).

Connections that were let in by a value ask twice a second whether it still counts: `recent` looks
at the file for all of them, `current` for each that asks to be let in.

A setting has one of four notations: `data:;base64,<base64>`, `file:///path`, the path of a file
that exists, or base64.

Source: AuthTokenUtils.readKeyFromUrl, AuthenticationProviderBasic in Pulsar; RFC 2397.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar
from urllib.parse import unquote, unquote_to_bytes

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.security.watched_file import WatchedFile

__all__ = ["LOOK_AGAIN_SECONDS", "KeySource", "key_bytes", "warn_if_others_can_read"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_AGAIN_SECONDS: Final = 0.25
"""How long `recent` takes a file for unchanged."""

_BASE64_TEXT: Final = rb"[A-Za-z0-9+/_-]+=*\s*"
_OTHERS_MAY_READ: Final = 0o077


def key_bytes(data: bytes) -> bytes:
    """The key in a file's contents, which are the key or base64 of it."""
    if re.fullmatch(_BASE64_TEXT, data):
        try:
            return base64.b64decode(data.strip().translate(_URL_SAFE), validate=True)
        except binascii.Error:
            return data
    return data


_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")


def warn_if_others_can_read(name: str, path: Path) -> None:
    """A line in the log if a file with a secret, which setting `name` gives, is open to others."""
    with contextlib.suppress(OSError):  # whoever reads it says that it can't be read
        if path.stat().st_mode & _OTHERS_MAY_READ:
            logger.warning(
                "a file with a secret can be read by others: chmod 600",
                extra={"setting": name, "path": str(path)},
            )


class KeySource(Generic[T]):
    """The value that a setting names, as `parse` makes it of the bytes; owned by a provider."""

    def __init__(
        self, name: str, text: str, parse: Callable[[bytes], T], *, is_secret: bool
    ) -> None:
        """Read the file.

        Args:
            name: The setting, for errors.
            text: Its value.
            parse: Makes what is wanted of the bytes; raises ValueError.
            is_secret: Whether a file that others can read brings a warning.

        Raises:
            ConfigurationError: It can't be read or parsed.
        """
        self._name = name
        self._parse = parse
        self._look_at = 0.0  # when `recent` looks at the file next
        self._file: WatchedFile | None = None
        path = _path_of(text)
        if path is None:
            self._value = self._parsed(_data_of(name, text))
            return
        self._file = WatchedFile(path)
        try:
            data = self._file.look()
        except OSError as error:
            raise ConfigurationError(f"{name}: {path}: {error.strerror}") from error
        if is_secret:
            warn_if_others_can_read(name, path)
        self._value = self._parsed(data or b"")

    @property
    def can_change(self) -> bool:
        """Whether it is read from a file."""
        return self._file is not None

    def recent(self, now: float) -> T:
        """The value as of at most `LOOK_AGAIN_SECONDS` ago; `now` is of the monotonic clock.

        It is the same object as long as the file says the same.
        """
        if now >= self._look_at:
            self._look_at = now + LOOK_AGAIN_SECONDS
            return self.current()
        return self._value

    def current(self) -> T:
        """The value; a file that changed is read again, and kept as it was if it can't be."""
        if self._file is None:
            return self._value
        try:
            data = self._file.look()
            if data is not None:
                value = self._parsed(data)
                if value != self._value:
                    self._value = value
                path = str(self._file.path)
                logger.info("read again", extra={"setting": self._name, "path": path})
        except (OSError, ConfigurationError) as error:
            logger.warning("not read again", extra={"setting": self._name, "error": str(error)})
        return self._value

    def _parsed(self, data: bytes) -> T:
        try:
            return self._parse(data)
        except ValueError as error:
            raise ConfigurationError(f"{self._name}: {error}") from error


def _path_of(text: str) -> Path | None:
    if text.startswith("data:"):
        return None
    if text.startswith("file:"):
        return Path("/" + unquote(text.removeprefix("file:")).lstrip("/"))
    try:
        return Path(text) if Path(text).exists() else None
    except OSError:  # too long for a name: base64
        return None


def _data_of(name: str, text: str) -> bytes:
    if text.startswith("data:"):
        head, separator, content = text.removeprefix("data:").partition(",")
        if not separator:
            raise ConfigurationError(f"{name}: expected data:;base64,<base64>")
        if not head.endswith(";base64"):
            return unquote_to_bytes(content)
        text = content
    try:
        return base64.b64decode(text.encode().translate(_URL_SAFE), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise ConfigurationError(
            f"{name}: neither a file that exists, data:;base64,…, nor base64"
        ) from None
