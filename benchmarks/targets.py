"""Targets: the broker of ours that a run starts, and others that run already.

CPU time is read from `/proc`, all threads of the process counted.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.certificates import Authority

PROGRAM = str(Path(sys.executable).with_name("pulsar-py"))
LOG_NAME = "broker.log"
"""The log of the brokers that a run starts, beside their data."""
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Target:
    """One broker."""

    name: str
    host: str
    port: int
    pid: int | None
    process: subprocess.Popen[str] | None = None
    data_dir: Path | None = None
    web_port: int | None = None
    ready_millis: float = 0.0
    settings: dict[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    """What connects to `port`, if that takes TLS."""
    stores: tuple[int, ...] = ()
    """Processes in which it stores entries, whose CPU time is told beside its own."""
    start: Callable[[], subprocess.Popen[str]] | None = None
    """Starts it once more, on its ports and its data."""

    @property
    def is_ours(self) -> bool:
        """Whether this run started it."""
        return self.process is not None

    def cpu_seconds(self) -> float:
        """User and system time of all threads so far; 0 where the process is not visible."""
        return 0.0 if self.pid is None else _cpu_seconds(self.pid)

    def stores_cpu_seconds(self) -> float:
        """The same of the processes that store its entries."""
        return sum(map(_cpu_seconds, self.stores))

    def resident_megabytes(self) -> float:
        """Resident memory now."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return 0.0

    def metric(self, name: str) -> float | None:
        """The sum over all lines of a metric that `/metrics` exports."""
        if self.web_port is None:
            return None
        with socket.create_connection((self.host, self.web_port), 10) as connection:
            connection.sendall(_request("/metrics/"))
            data = b""
            while block := connection.recv(1 << 16):
                data += block
        values = [
            float(line.rsplit(" ", 1)[1])
            for line in data.decode().splitlines()
            if line.startswith((f"{name} ", f"{name}{{"))
        ]
        return sum(values) if values else None

    def state(self) -> str:
        """Whether its process runs, the last complaint in its log, and the room on its disk."""
        if self.process is None or self.data_dir is None:
            return f"{self.name} runs elsewhere"
        with suppress(subprocess.TimeoutExpired):  # connections of a process end before it does
            self.process.wait(1)
        status = self.process.poll()
        text = "the broker runs" if status is None else f"the broker ended with status {status}"
        directory = self.data_dir.parent
        text += f", {shutil.disk_usage(directory).free >> 20:,} MB are free in {directory}"
        log = directory / LOG_NAME
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        complaints = [line for line in lines if " ERROR " in line or " WARNING " in line]
        return f"{text}; {log}: {complaints[-1] if complaints else 'no complaint'}"

    def restart(self) -> None:
        """Stop what this run started, and start it again on what it has stored.

        Raises:
            RuntimeError: This run did not start it, or it does not get ready.
        """
        if self.start is None:
            raise RuntimeError(f"{self.name} runs elsewhere, and is not restarted")
        self._end()
        self.process = self.start()
        self.pid = self.process.pid

    def stop(self) -> None:
        """Stop what this run started, and remove its data."""
        if self.process is None:
            return
        self._end()
        if self.data_dir is not None:
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def _end(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int, request: bytes | None = None) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as connection:
            if request is None:
                return True
            connection.sendall(request)
            return bool(connection.recv(16))
    except OSError:
        return False


def _request(path: str) -> bytes:
    """Names the local host: a broker that listens there without authentication refuses others."""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()


def start_ours(
    directory: Path,
    settings: dict[str, str] | None = None,
    *,
    data_dir: Path | None = None,
    tree: Path | None = None,
    in_memory: bool = False,
    is_tls: bool = False,
    program: Sequence[str] = (PROGRAM,),
) -> Target:
    """Start `pulsar-py standalone` on free ports; returns when both answer.

    `data_dir` is one that was filled before; by default it is new. `Target.stop` removes it unless
    the target's `data_dir` was set to None. `in_memory` writes nothing to it. `tree` is a checkout
    whose package is run instead of the installed one. With `is_tls` its port is one of TLS.
    `program` is started in place of `pulsar-py`, with the same arguments.
    """
    port, web_port = free_port(), free_port()
    directory.mkdir(parents=True, exist_ok=True)
    data_dir = data_dir or Path(tempfile.mkdtemp(prefix="bench-data-", dir=directory))
    command = [
        *program, "standalone", "--data-dir", str(data_dir),
        "--host", "127.0.0.1", "--port", str(port), "--web-port", str(web_port),
    ]  # fmt: skip
    if in_memory:
        command[len(program) + 1 : len(program) + 3] = ["--in-memory"]
    context: ssl.SSLContext | None = None
    further: dict[str, str] = {}
    if is_tls:
        context, further = _tls(directory)
    for name, value in {**(settings or {}), **further}.items():
        command += ["--set", f"{name}={value}"]
    environment = os.environ | ({} if tree is None else {"PYTHONPATH": str(tree.resolve())})

    def start() -> subprocess.Popen[str]:
        with (directory / LOG_NAME).open("a") as log:
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=log, text=True, env=environment
            )
        _await_ready(process, " ".join(command), port, web_port)
        return process

    begun = time.perf_counter()
    process = start()
    ready_millis = (time.perf_counter() - begun) * 1e3
    target = Target(
        "pulsar_py", "127.0.0.1", port, process.pid, process, data_dir, web_port, ready_millis,
        settings or {}, context, start=start,
    )  # fmt: skip
    if is_tls:
        target.port = int(further["brokerServicePortTls"])
    return target


def _await_ready(process: subprocess.Popen[str], command: str, port: int, web_port: int) -> None:
    begun = time.perf_counter()
    health = _request("/admin/v2/clusters")
    while not (_answers(port) and _answers(web_port, health)):
        if process.poll() is not None:
            raise RuntimeError(f"{command} ended with {process.returncode}")
        if time.perf_counter() - begun > 30:
            process.kill()
            raise RuntimeError("the broker did not get ready within 30 s")
        time.sleep(0.002)


def _tls(directory: Path) -> tuple[ssl.SSLContext, dict[str, str]]:
    """A context for clients, and the settings of a broker with a certificate that it trusts."""
    authority = Authority(directory, "bench-ca")
    certificate, key = authority.issue("bench-broker")
    context = ssl.create_default_context(cafile=authority.path)
    return context, {
        "brokerServicePortTls": str(free_port()),
        "tlsCertificateFilePath": str(Path(certificate).resolve()),
        "tlsKeyFilePath": str(Path(key).resolve()),
    }


def _listener_pid(port: int) -> int | None:
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            if any(str(link.readlink()) in inodes for link in (process / "fd").iterdir()):
                return int(process.name)
        except OSError:
            continue
    return None


def running(description: str) -> Target:
    """A broker given as `NAME=HOST:PORT` that runs already."""
    name, _, address = description.partition("=")
    host, _, port = address.rpartition(":")
    if not name or not host or not port.isdigit():
        raise SystemExit(f"--against {description!r} is not of the form NAME=HOST:PORT")
    return Target(name, host, int(port), _listener_pid(int(port)))
