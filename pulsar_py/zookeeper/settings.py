"""`ZooKeeperSettings`: a client's timeouts, bounds, TLS and credentials (values)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pulsar_py.common.network.tls import TlsOptions
from pulsar_py.zookeeper import messages
from pulsar_py.zookeeper.digest_md5 import DigestMd5Credentials

SERVER_MAX_REQUEST_BYTES: Final = 0xFFFFF
"""A server's `jute.maxbuffer` unless it is set: it hangs up on larger requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSettings:
    """The settings of one client."""

    session_timeout_millis: int = 30_000
    operation_timeout_seconds: float = 30.0
    connect_timeout_seconds: float = 5.0
    """At most, for one server; with short sessions or many servers it is less."""
    max_request_bytes: int = SERVER_MAX_REQUEST_BYTES
    """The servers' `jute.maxbuffer`; what is larger is refused here, before it is sent."""
    max_under_way_count: int = 10_000
    """Requests without an answer; more wait here."""
    max_under_way_bytes: int = 64 * 1024 * 1024
    """Of those requests."""
    max_batch_count: int = 1_000
    """Changes that go together as one request; 1: each goes alone."""
    max_batch_bytes: int = 128 * 1024
    """Of the changes in one request, where it has more than one."""
    tls: TlsOptions | None = None
    """How to speak TLS, to the servers' `secureClientPort`; None: plain."""
    sasl: DigestMd5Credentials | None = None
    """Who this is, by SASL's DIGEST-MD5; servers know it from their JAAS configuration."""
    credentials: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)
    """More proofs of who this is: a scheme such as `digest`, and what it wants."""
    acls: tuple[messages.Acl, ...] = messages.OPEN_ACL
    """Of every node that is made: `OPEN_ACL`, `CREATOR_ALL_ACL`, or a choice of one's own."""
