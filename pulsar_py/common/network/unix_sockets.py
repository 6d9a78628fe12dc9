"""Unix stream sockets that only one user may use, and files that go through them (edge).

The file of a listening socket has mode 0600 from the moment it is there. One that a killed process
has left is replaced; one where somebody listens, or anything that is no socket, is not touched.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
import struct
from array import array
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.failures import OnFailure

__all__ = ["MAX_PATH_BYTES", "bind_unix", "has_peer_users", "peer_user", "send_with_files"]

MAX_PATH_BYTES: Final = 107
"""Of a socket's path; the system's own limit, without the zero at the end."""

_CREDENTIALS: Final = struct.Struct("3i")  # struct ucred: pid, uid, gid


def has_peer_users() -> bool:
    """Whether the system says who is at the other end of a socket, as Linux does."""
    return hasattr(socket, "SO_PEERCRED")


def peer_user(connected: socket.socket) -> int:
    """The id of the user that the process had that connected.

    Raises:
        OSError: The socket is not connected any more.
    """
    found = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(found)[1])


def bind_unix(path: Path, backlog: int) -> socket.socket:
    """A socket that listens at a path and does not block.

    Raises:
        ConfigurationError: The path is too long, or taken.
        OSError: It can't be bound.
    """
    if "\0" in str(path):
        raise ConfigurationError(f"{str(path)!r}: a path of a socket has no zero byte")
    size = len(os.fsencode(path))
    if size > MAX_PATH_BYTES:
        raise ConfigurationError(
            f"{path}: {size} bytes, the system takes socket paths of at most {MAX_PATH_BYTES} "
            "bytes: choose a shorter one"
        )
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with OnFailure(made.close):
        made.setblocking(False)
        # Before it is bound: so the file has the mode at once, whatever the umask is.
        os.fchmod(made.fileno(), stat.S_IRUSR | stat.S_IWUSR)
        try:
            made.bind(str(path))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise OSError(error.errno, f"can't listen at {path}: {error.strerror}") from error
            _remove_dead(path)
            made.bind(str(path))
        made.listen(backlog)
    return made


def _remove_dead(path: Path) -> None:
    """Remove a socket that nobody listens at.

    Raises:
        ConfigurationError: Somebody does, or it is none.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise ConfigurationError(f"{path} is there, and is no socket: choose another path")
        if _is_alive(path):
            raise ConfigurationError(
                f"{path}: another process listens there: choose another path, or stop it"
            )
        path.unlink()


def _is_alive(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError as error:
            if error.errno == errno.EAGAIN:  # too many wait to be accepted
                return True
            raise
        return True


async def send_with_files(
    connected: socket.socket, data: bytes, descriptors: Sequence[int]
) -> None:
    """Send all of `data`, of which the first byte brings the files along.

    Raises:
        OSError: The connection has ended, or too many files are under way.
    """
    loop = asyncio.get_running_loop()
    files = array("i", descriptors)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)] if files else []
    while True:
        try:
            sent = connected.sendmsg([data], rights)
            break
        except BlockingIOError:
            await _writable(loop, connected)
    if sent < len(data):
        await loop.sock_sendall(connected, memoryview(data)[sent:])


async def _writable(loop: asyncio.AbstractEventLoop, connected: socket.socket) -> None:
    """Return when there is room to send."""
    ready = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_writer(connected.fileno(), wake)
    try:
        await ready
    finally:
        loop.remove_writer(connected.fileno())
