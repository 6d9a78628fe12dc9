"""Addresses of ZooKeeper clusters: `zk:HOST:PORT,HOST:PORT/chroot`.

Pure. Source: the metadataStoreUrl of Apache Pulsar, ConnectStringParser in ZooKeeper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pulsar_py.metadata import paths

SCHEME: Final = "zk:"
DEFAULT_PORT: Final = 2181


@dataclass(frozen=True, slots=True)
class ZooKeeperAddress:
    """The servers of one cluster, and the node that stands for `/`."""

    servers: tuple[tuple[str, int], ...]
    chroot: str = ""
    """Without a `/` at its end; empty: the real root."""

    @classmethod
    def parse(cls, url: str) -> ZooKeeperAddress:
        """Read `zk:HOST[:PORT][,…][/chroot]`; the scheme may be missing.

        Raises:
            ValueError: It is no such address.
        """
        hosts, slash, rest = url.removeprefix(SCHEME).removeprefix("//").partition("/")
        chroot = f"/{rest}".rstrip("/") if slash else ""
        if chroot:
            paths.check(chroot)
        servers = tuple(_server(host.strip(), url) for host in hosts.split(",") if host.strip())
        if not servers:
            raise ValueError(f"{url!r} names no server, expected {SCHEME}HOST:PORT,…/chroot")
        return cls(servers, chroot)

    def __str__(self) -> str:
        servers = ",".join(f"{host}:{port}" for host, port in self.servers)
        return f"{SCHEME}{servers}{self.chroot}"


def _server(text: str, url: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if text.endswith("]") or not colon:
        host, port = text, str(DEFAULT_PORT)
    host = host.removeprefix("[").removesuffix("]")
    if not (host and port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
        raise ValueError(f"{text!r} in {url!r} is no HOST:PORT")
    return host, int(port)
