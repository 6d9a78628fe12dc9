"""`BookKeeperSettings`: the settings of one BookKeeper client.

A field whose docstring begins with a name in camel case is that setting of Apache Pulsar's broker;
the others are this client's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pulsar_py.bookkeeper.bookies.connection import ConnectionLimits
from pulsar_py.bookkeeper.bookies.health import QuarantineSettings
from pulsar_py.bookkeeper.placement.placement import PlacementSettings
from pulsar_py.bookkeeper.protocol.digest import MAX_DIGEST_BYTES
from pulsar_py.bookkeeper.protocol.entry_format import HEAD_BYTES
from pulsar_py.bookkeeper.protocol.frames import ADD_OVERHEAD_BYTES
from pulsar_py.ledgers.store import StoreLimits
from pulsar_py.metadata import paths

MEBIBYTE: Final = 1024 * 1024

FRAME_OVERHEAD_BYTES: Final = ADD_OVERHEAD_BYTES + HEAD_BYTES + MAX_DIGEST_BYTES
"""The bytes of an add frame beyond the payload, whatever the digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookKeeperSettings:
    """The settings of one store."""

    root: str = paths.LEDGERS
    """Where the cluster's metadata stands: the path in `bookkeeperMetadataServiceUri`."""
    max_entry_bytes: int | None = None
    """The largest entry; None: as much as a frame of `connection.max_frame_bytes` holds."""
    max_pinned_bytes: int = 256 * MEBIBYTE
    """Of entries that a bookie of their write set has not answered for, in all; more than
    `connection.max_waiting_bytes`, or one slow bookie stops all ledgers before it is replaced."""
    answer_timeout_seconds: float = 30.0
    """`bookkeeperClientTimeoutInSeconds`, of a whole append or call, with all its attempts."""
    connection: ConnectionLimits = field(
        default_factory=lambda: ConnectionLimits(
            connect_timeout_seconds=4.0, request_timeout_seconds=8.0
        )
    )
    """The bounds of one connection: the time of one request is shorter than that of a call, so
    that another bookie can be asked; and 64 MiB that may wait for one bookie."""
    quarantine: QuarantineSettings = field(default_factory=QuarantineSettings)
    placement: PlacementSettings = field(default_factory=PlacementSettings)
    speculative_read_timeout_seconds: float = 0.0
    """`bookkeeperClientSpeculativeReadTimeoutInMillis`, in seconds: after it the next replica is
    asked too; 0 waits for the first one's answer."""
    has_sticky_reads: bool = True
    """`bookkeeperEnableStickyReads`: a reader stays with one bookie where each has all entries."""
    batch_read_bytes: int = MEBIBYTE
    """The size of an answer with several entries, where a bookie has all and takes such requests;
    0 asks for each entry by itself."""
    explicit_lac_interval_seconds: float = 0.0
    """`bookkeeperExplicitLacIntervalInMills`, in seconds: so often bookies are told how far an idle
    ledger is confirmed, and whoever reads an open one asks them; 0 does neither."""
    read_ahead_bytes: int = 4 * MEBIBYTE
    """What is fetched ahead for a reader of one ledger that reads in order; 0 fetches nothing."""

    @property
    def limits(self) -> StoreLimits:
        """The limits in the form of the contract of ledger stores."""
        fits = self.connection.max_frame_bytes - FRAME_OVERHEAD_BYTES
        return StoreLimits(
            max_entry_bytes=fits if self.max_entry_bytes is None else self.max_entry_bytes,
            max_pinned_bytes=self.max_pinned_bytes,
            answer_timeout_seconds=self.answer_timeout_seconds,
        )
