"""Settings of a broker whose metadata is in ZooKeeper and whose ledgers are on BookKeeper.

They have their effect with `pulsar-py broker`. A standalone broker has both within its process.
"""

# ruff: noqa: N815 - settings keep the names of broker.conf
from __future__ import annotations

from enum import Enum
from typing import Final

from pulsar_py.ledgers.store import DigestType
from pulsar_py.server.settings.declaring import Settings, setting

ZOOKEEPER: Final = "ZooKeeper"
BOOKKEEPER: Final = "BookKeeper"
CLUSTER_CATEGORIES: Final = frozenset({ZOOKEEPER, BOOKKEEPER})

MAX_QUORUM: Final = 2**31 - 1


class SessionExpiredPolicy(Enum):
    """What a broker does whose session with ZooKeeper has ended."""

    RECONNECT = "reconnect"
    SHUTDOWN = "shutdown"


class LedgerDigest(Enum):
    """The checksum or MAC of entries, by the names that Pulsar has for them."""

    CRC32 = "CRC32"
    MAC = "MAC"
    CRC32C = "CRC32C"
    DUMMY = "DUMMY"

    @property
    def digest_type(self) -> DigestType:
        """The digest type in the form that ledgers have."""
        return DigestType.HMAC if self is LedgerDigest.MAC else DigestType[self.name]


class ClusterSettings(Settings):
    """Addresses of ZooKeeper and BookKeeper, quorums and digests of ledgers."""

    metadataStoreUrl: str = setting(
        default="",
        category=ZOOKEEPER,
        doc="ZooKeeper's servers, as `zk:HOST:PORT,HOST:PORT/chroot`; `zk:` and the chroot may be "
        "missing. A broker of a cluster needs it.",
    )
    configurationMetadataStoreUrl: str = setting(
        default="",
        category=ZOOKEEPER,
        doc="The same of the ZooKeeper that all clusters share; empty means that of the cluster.",
    )
    metadataStoreSessionTimeoutMillis: int = setting(
        default=30_000,
        minimum=1,
        category=ZOOKEEPER,
        doc="Milliseconds without a sign of life after which ZooKeeper gives what a broker owns to "
        "others. The servers have bounds of their own.",
    )
    metadataStoreOperationTimeoutSeconds: int = setting(
        default=30,
        minimum=1,
        category=ZOOKEEPER,
        doc="Seconds after which a request to ZooKeeper has failed.",
    )
    metadataStoreBatchingEnabled: bool = setting(
        default=True,
        category=ZOOKEEPER,
        doc="Whether changes that are asked for while another one is under way go to ZooKeeper "
        "together, as one request that is done as a whole or not at all.",
    )
    metadataStoreBatchingMaxOperations: int = setting(
        default=1000,
        minimum=1,
        category=ZOOKEEPER,
        doc="The most changes in such a request.",
    )
    metadataStoreBatchingMaxSizeKb: int = setting(
        default=128,
        minimum=1,
        category=ZOOKEEPER,
        doc="The most kilobytes in such a request; never more than half of what the servers take.",
    )
    zookeeperSessionExpiredPolicy: SessionExpiredPolicy = setting(
        default=SessionExpiredPolicy.RECONNECT,
        category=ZOOKEEPER,
        doc="What a broker does whose session has ended: begin another one and take up again what "
        "nobody else has taken, or end itself with exit code 1.",
    )
    bookkeeperMetadataServiceUri: str = setting(
        default="",
        category=BOOKKEEPER,
        doc="Where BookKeeper's metadata is, as `zk+hierarchical://HOST:PORT;HOST:PORT/ledgers` or "
        "`metadata-store:zk:HOST:PORT,HOST:PORT/ledgers`; empty means `/ledgers` in the cluster's "
        "ZooKeeper.",
    )
    bookkeeperClientTimeoutInSeconds: int = setting(
        default=30,
        minimum=1,
        category=BOOKKEEPER,
        doc="Seconds after which an entry without enough answers has failed. A bookie that says "
        "nothing for a quarter of them is replaced.",
    )
    managedLedgerDefaultEnsembleSize: int = setting(
        default=2,
        minimum=1,
        maximum=MAX_QUORUM,
        category=BOOKKEEPER,
        doc="Bookies that a ledger is spread over, unless a policy says otherwise.",
    )
    managedLedgerDefaultWriteQuorum: int = setting(
        default=2,
        minimum=1,
        maximum=MAX_QUORUM,
        category=BOOKKEEPER,
        doc="Bookies that each of its entries is written to; at most as many.",
    )
    managedLedgerDefaultAckQuorum: int = setting(
        default=2,
        minimum=1,
        maximum=MAX_QUORUM,
        category=BOOKKEEPER,
        doc="Bookies that have to confirm an entry; at most as many.",
    )
    managedLedgerMaxEnsembleSize: int = setting(
        default=5,
        minimum=1,
        category=BOOKKEEPER,
        doc="The largest ensemble that this file or a policy may ask for; beyond it no ledger is "
        "created.",
    )
    managedLedgerMaxWriteQuorum: int = setting(
        default=5, minimum=1, category=BOOKKEEPER, doc="The same of the write quorum."
    )
    managedLedgerMaxAckQuorum: int = setting(
        default=5, minimum=1, category=BOOKKEEPER, doc="The same of the ack quorum."
    )
    managedLedgerDigestType: LedgerDigest = setting(
        default=LedgerDigest.CRC32C,
        category=BOOKKEEPER,
        doc="The checksum of entries in new ledgers; older ones are read by their own.",
    )
    managedLedgerPassword: str = setting(
        default="",
        category=BOOKKEEPER,
        doc="Password of ledgers of topics and cursors. It stands in clear in ZooKeeper; topics "
        "whose ledgers have another one are not opened.",
    )
    bookkeeperClientRackawarePolicyEnabled: bool = setting(
        default=True,
        category=BOOKKEEPER,
        doc="Spread the copies of an entry over racks, as `/bookies` in ZooKeeper names them.",
    )
    bookkeeperClientRegionawarePolicyEnabled: bool = setting(
        default=False,
        category=BOOKKEEPER,
        doc="Spread them over regions first: a rack is then named `/region/rack`.",
    )
    bookkeeperClientMinNumRacksPerWriteQuorum: int = setting(
        default=2,
        minimum=1,
        category=BOOKKEEPER,
        doc="Racks that a write quorum should lie on.",
    )
    bookkeeperClientEnforceMinNumRacksPerWriteQuorum: bool = setting(
        default=False,
        category=BOOKKEEPER,
        doc="Create no ledger where its write quorums would lie on fewer racks.",
    )
    bookkeeperClientIsolationGroups: str = setting(
        default="",
        category=BOOKKEEPER,
        doc="Groups of bookies that ledgers are kept on, separated by commas; empty means all.",
    )
    bookkeeperClientSecondaryIsolationGroups: str = setting(
        default="",
        category=BOOKKEEPER,
        doc="Groups whose bookies are taken where the first ones have too few.",
    )
    bookkeeperClientHealthCheckEnabled: bool = setting(
        default=True,
        category=BOOKKEEPER,
        doc="Avoid bookies that failed often, where there are others.",
    )
    bookkeeperClientHealthCheckIntervalSeconds: int = setting(
        default=60,
        minimum=1,
        category=BOOKKEEPER,
        doc="Seconds within which failures of a bookie are counted together.",
    )
    bookkeeperClientHealthCheckErrorThresholdPerInterval: int = setting(
        default=5,
        minimum=1,
        category=BOOKKEEPER,
        doc="Failures of a bookie in that time after which it is avoided.",
    )
    bookkeeperClientHealthCheckQuarantineTimeInSeconds: int = setting(
        default=1800,
        minimum=0,
        category=BOOKKEEPER,
        doc="Seconds for which it is avoided.",
    )
    bookkeeperClientReorderReadSequenceEnabled: bool = setting(
        default=True,
        category=BOOKKEEPER,
        doc="Ask a bookie in the broker's own rack first for an entry, and one that fails last.",
    )
    bookkeeperClientSpeculativeReadTimeoutInMillis: int = setting(
        default=0,
        minimum=0,
        category=BOOKKEEPER,
        doc="Milliseconds after which the next bookie is asked for an entry, too; 0 means that it "
        "is asked only if the first one fails.",
    )
    bookkeeperExplicitLacIntervalInMills: int = setting(
        default=0,
        minimum=0,
        category=BOOKKEEPER,
        doc="Milliseconds after which bookies are told how far a ledger is confirmed to which "
        "nothing is appended, for whoever reads it while it is open; 0 leaves that to the next "
        "entry.",
    )
    bookkeeperEnableStickyReads: bool = setting(
        default=True,
        category=BOOKKEEPER,
        doc="Read a ledger from one of its bookies as long as that one answers, where each of them "
        "has all entries.",
    )
