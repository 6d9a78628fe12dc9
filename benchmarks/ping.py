"""Pinger: how long a broker takes to answer a PING while it has work."""

from __future__ import annotations

import socket
import struct
import threading
import time

from benchmarks.raw_client import frame
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand


class Pinger(threading.Thread):
    """Sends PING after PING over a connection of its own."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._socket = socket.create_connection(("127.0.0.1", port), 30)
        connect = BaseCommand(type=BaseCommand.CONNECT)
        connect.connect.client_version = "pulsar_py-bench"
        connect.connect.protocol_version = 20
        self._socket.sendall(frame(connect))
        self._answer()
        self._is_stopped = False
        self.longest_millis = 0.0

    def run(self) -> None:
        """Measure until stopped."""
        command = BaseCommand(type=BaseCommand.PING)
        command.ping.SetInParent()
        ping = frame(command)
        while not self._is_stopped:
            sent = time.perf_counter()
            self._socket.sendall(ping)
            while self._answer().type != BaseCommand.PONG:
                pass
            self.longest_millis = max(self.longest_millis, (time.perf_counter() - sent) * 1e3)
            time.sleep(0.005)
        self._socket.close()

    def stop(self) -> None:
        """End the thread."""
        self._is_stopped = True
        self.join()

    def _answer(self) -> BaseCommand:
        (size,) = struct.unpack(">I", self._exactly(4))
        data = self._exactly(size)
        (length,) = struct.unpack_from(">I", data)
        return BaseCommand.FromString(data[4 : 4 + length])

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the broker hung up")
            data += piece
        return data
