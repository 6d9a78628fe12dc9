"""Parses `bookkeeperMetadataServiceUri`, the place of BookKeeper's metadata (pure).

    zk+hierarchical://HOST:PORT;HOST:PORT/chroot/ledgers        or zk+longhierarchical
    metadata-store:zk:HOST:PORT,HOST:PORT/chroot/ledgers        zk: may be missing

The last part of the path is the root of the metadata, what stands before it a chroot.

Source: MetadataDrivers, ZKMetadataDriverBase in Apache BookKeeper; BookKeeperClientFactoryImpl in
Pulsar's broker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pulsar_py.metadata import paths

METADATA_STORE: Final = "metadata-store:"
OTHER_STORES: Final = ("memory:", "rocksdb:", "etcd:", "oxia:")
"""What the URL of one of Apache Pulsar's metadata stores begins with where it is no ZooKeeper."""

_SCHEMES: Final = ("zk", "zk+hierarchical", "zk+longhierarchical")


@dataclass(frozen=True, slots=True)
class BookKeeperMetadataAddress:
    """One cluster's metadata."""

    zookeeper_url: str
    """The servers with the chroot, as `zk:HOST:PORT,…/chroot`."""
    root: str
    """Where it stands in there, such as `/ledgers`."""

    @classmethod
    def parse(cls, uri: str) -> BookKeeperMetadataAddress:
        """Read a URI of either form.

        Raises:
            ValueError: It is none, or names a store or a layout that is not served.
        """
        if uri.startswith(METADATA_STORE):
            url = uri.removeprefix(METADATA_STORE)
            check_is_zookeeper(url)
            hosts, slash, path = url.removeprefix("zk:").removeprefix("//").partition("/")
        else:
            scheme, separator, rest = uri.partition("://")
            if not separator:
                raise ValueError(
                    f"{uri!r}: expected {' or '.join(_SCHEMES)}, then ://HOST:PORT/ledgers"
                )
            if scheme not in _SCHEMES:
                raise ValueError(
                    f"the layout {scheme!r} is not supported, expected {' or '.join(_SCHEMES[1:])}"
                )
            hosts, slash, path = rest.partition("/")
        path = path.rstrip("/")
        if not hosts or not slash or not path:
            raise ValueError(f"{uri!r} has no servers, or no path such as /ledgers")
        path = f"/{path}"
        paths.check(path)
        chroot, _, name = path.rpartition("/")
        return cls(f"zk:{hosts.replace(';', ',')}{chroot}", f"/{name}")


def check_is_zookeeper(url: str) -> None:
    """Refuse the URL of a metadata store that is no ZooKeeper.

    Raises:
        ValueError: It is of another kind.
    """
    for prefix in OTHER_STORES:
        if url.startswith(prefix):
            raise ValueError(f"the metadata store {prefix[:-1]} is not supported, expected zk")
