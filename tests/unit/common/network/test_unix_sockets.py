from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.network.unix_sockets import (
    MAX_PATH_BYTES,
    bind_unix,
    has_peer_users,
    peer_user,
    send_with_files,
)


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A path that is short enough, wherever temporary files are."""
    directory = os.open(tmp_path, os.O_RDONLY)
    yield Path(f"/proc/self/fd/{directory}/s")
    os.close(directory)


def connect(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.connect(str(path))
    return made


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_its_user_may_use_it_whatever_the_umask(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        listening = bind_unix(path, 5)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    with connect(path), listening.accept()[0] as accepted:
        assert has_peer_users()
        assert peer_user(accepted) == os.getuid()
    listening.close()


def test_one_that_a_killed_process_has_left_is_replaced(path: Path) -> None:
    bind_unix(path, 5).close()
    assert path.exists()
    listening = bind_unix(path, 5)
    connect(path).close()
    listening.close()


def test_one_where_somebody_listens_is_left_alone(path: Path) -> None:
    listening = bind_unix(path, 0)
    inode = path.lstat().st_ino
    waiting = []
    for _ in range(3):  # the last one finds the queue full
        with pytest.raises(ConfigurationError, match="another process listens there: choose"):
            bind_unix(path, 5)
        waiting.append(socket.socket(socket.AF_UNIX))
        waiting[-1].setblocking(False)
        waiting[-1].connect_ex(str(path))
    assert waiting[-1].connect_ex(str(path)) == errno.EAGAIN
    assert path.lstat().st_ino == inode
    for each in (*waiting, listening):
        each.close()


def test_what_is_no_socket_is_left_alone(path: Path) -> None:
    path.write_text("important")
    with pytest.raises(ConfigurationError, match="is there, and is no socket: choose another"):
        bind_unix(path, 5)
    assert path.read_text() == "important"
    path.unlink()
    path.symlink_to("elsewhere")
    with pytest.raises(ConfigurationError, match="is no socket"):
        bind_unix(path, 5)
    assert path.is_symlink()


def test_the_longest_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    longest = Path("s" * MAX_PATH_BYTES)
    listening = bind_unix(longest, 5)
    connect(longest).close()
    listening.close()
    with pytest.raises(ConfigurationError, match="108 bytes, the system takes socket paths of at"):
        bind_unix(Path("s" * (MAX_PATH_BYTES + 1)), 5)
    with pytest.raises(ConfigurationError, match="108 bytes"):
        bind_unix(Path("ä" * 54), 5)


def test_no_name_without_a_file() -> None:
    """Linux takes a zero byte for a name that no mode protects."""
    with pytest.raises(
        ConfigurationError, match=r"'\\x00name': a path of a socket has no zero byte"
    ):
        bind_unix(Path("\0name"), 5)


def test_a_place_where_none_can_be(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"can't listen at .*/there: No such file"):
        bind_unix(path.parent / "not" / "there", 5)


def received(peer: socket.socket, size: int) -> tuple[bytes, list[int]]:
    data, files = b"", array("i")
    while len(data) < size:
        more, ancillary, *_ = peer.recvmsg(65_536, socket.CMSG_SPACE(4 * 16))
        data += more
        for _, _, rights in ancillary:
            files += array("i", rights)
    return data, list(files)


@pytest.mark.parametrize("size", [1, 1000, 3_000_000])
async def test_files_come_with_the_data_and_however_slowly_it_is_taken(
    tmp_path: Path, size: int
) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"content")
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    ours.setblocking(False)
    data = os.urandom(size)
    tasks = TaskOwner("test")
    with file.open("rb") as opened, file.open("rb") as other:
        descriptors = [opened.fileno(), other.fileno()]
        first = tasks.spawn(send_with_files(ours, data, descriptors), "send")
        await asyncio.sleep(0.01)
        assert first.done() is (size < 100_000)
        reading = asyncio.to_thread(received, theirs, size)
        found, files = (await asyncio.gather(reading, first))[0]
    assert found == data
    assert [os.pread(each, 100, 0) for each in files] == [b"content"] * 2
    for each in files:
        os.close(each)
    # The buffer is full before the first byte: files come with that, later.
    while True:
        try:
            ours.send(bytes(100_000))
        except BlockingIOError:
            break
    with file.open("rb") as opened:
        second = tasks.spawn(send_with_files(ours, b"end", [opened.fileno()]), "send")
        await asyncio.sleep(0.01)
        assert not second.done()

        def drained() -> tuple[bytes, list[int]]:
            data, files = b"", list[int]()
            while not data.endswith(b"end"):
                more, new = received(theirs, 1)
                data, files = (data + more)[-10:], files + new
            return data, files

        (found, files), _ = await asyncio.gather(asyncio.to_thread(drained), second)
    assert len(files) == 1
    os.close(files[0])
    for each in (ours, theirs):
        each.close()


async def test_a_send_can_be_given_up() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    ours.setblocking(False)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await send_with_files(ours, bytes(10_000_000), [])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await send_with_files(ours, b"more", [])
    theirs.close()
    with pytest.raises(BrokenPipeError):
        await send_with_files(ours, b"more", [])
    ours.close()
