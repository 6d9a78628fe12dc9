"""A forked child must not touch what its parent uses."""

from __future__ import annotations

import os
import socket

from pulsar_py.client.shared.fork_safety import watch


class Holder:
    """Holds one end of a pair of sockets."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.is_detached = False

    def detach_after_fork(self) -> list[int]:
        self.is_detached = True
        return [self.sock.fileno()]


def in_child(check) -> int:
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if check() else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def test_a_child_is_told_and_its_copies_lead_nowhere() -> None:
    ours, peer = socket.socketpair()
    with ours, peer:
        holder = Holder(ours)
        watch(holder)

        def check() -> bool:
            try:
                ours.send(b"from the child")
            except OSError:
                return holder.is_detached
            return False

        assert in_child(check) == 0
        assert not holder.is_detached
        ours.send(b"from the parent")
        assert peer.recv(100) == b"from the parent"


def test_the_peer_sees_the_end_when_the_parent_closes() -> None:
    ours, peer = socket.socketpair()
    with ours, peer:
        holder = Holder(ours)
        watch(holder)
        read_end, write_end = os.pipe()
        child = os.fork()
        if not child:
            os.close(write_end)
            os.read(read_end, 1)  # lives until the parent is done
            os._exit(0)
        ours.close()
        assert peer.recv(1) == b""
        os.close(write_end)
        os.waitpid(child, 0)
        os.close(read_end)


def test_who_is_gone_is_not_called() -> None:
    ours, peer = socket.socketpair()
    with ours, peer:
        watch(Holder(ours))

        assert in_child(lambda: ours.send(b"x") == 1) == 0
