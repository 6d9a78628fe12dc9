"""service_uri: where BookKeeper's metadata is, and what is refused."""

from __future__ import annotations

import pytest

from pulsar_py.bookkeeper.service_uri import BookKeeperMetadataAddress, check_is_zookeeper


@pytest.mark.parametrize(
    ("uri", "url", "root"),
    [
        ("zk+hierarchical://h:2181/ledgers", "zk:h:2181", "/ledgers"),
        ("zk+longhierarchical://h/ledgers", "zk:h", "/ledgers"),
        ("zk://h:1/bk", "zk:h:1", "/bk"),
        ("zk+hierarchical://h:1;i:2;j/a/b/ledgers/", "zk:h:1,i:2,j/a/b", "/ledgers"),
        ("metadata-store:zk:h:1,i:2/ledgers", "zk:h:1,i:2", "/ledgers"),
        ("metadata-store:h:1/chroot/ledgers", "zk:h:1/chroot", "/ledgers"),
    ],
)
def test_both_forms_name_servers_and_root(uri: str, url: str, root: str) -> None:
    assert BookKeeperMetadataAddress.parse(uri) == BookKeeperMetadataAddress(url, root)


@pytest.mark.parametrize("layout", ["null", "flat", "ms", "hierarchical2", ""])
def test_other_layouts_are_refused(layout: str) -> None:
    with pytest.raises(ValueError, match=f"the layout 'zk.{layout}' is not supported, expected zk"):
        BookKeeperMetadataAddress.parse(f"zk+{layout}://h:2181/ledgers")


@pytest.mark.parametrize("kind", ["etcd", "rocksdb", "memory", "oxia"])
def test_other_stores_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=f"metadata store {kind} is not supported"):
        BookKeeperMetadataAddress.parse(f"metadata-store:{kind}:h:1/ledgers")
    with pytest.raises(ValueError, match=kind):
        check_is_zookeeper(f"{kind}://h")
    check_is_zookeeper(f"zk:{kind}:2181")


@pytest.mark.parametrize(
    "uri", ["", "h:2181/ledgers", "zk://h:2181", "zk://h:2181/", "zk:///ledgers", "zk://h/a//b"]
)
def test_what_is_no_such_uri_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match=r"ledgers|is not a path"):
        BookKeeperMetadataAddress.parse(uri)
