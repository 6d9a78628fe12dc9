from __future__ import annotations

import pytest

from pulsar_py.zookeeper.address import ZooKeeperAddress


@pytest.mark.parametrize(
    ("url", "servers", "chroot"),
    [
        ("zk:a:1", (("a", 1),), ""),
        ("zk:a", (("a", 2181),), ""),
        ("zk:a:1,b:2/pulsar/one", (("a", 1), ("b", 2)), "/pulsar/one"),
        ("zk:a:1/", (("a", 1),), ""),
        ("zk://a:1/x", (("a", 1),), "/x"),
        ("a:1, b", (("a", 1), ("b", 2181)), ""),
        ("zk:[::1]:5,[::2]", (("::1", 5), ("::2", 2181)), ""),
    ],
)
def test_servers_and_chroot_are_read(
    url: str, servers: tuple[tuple[str, int], ...], chroot: str
) -> None:
    address = ZooKeeperAddress.parse(url)
    assert (address.servers, address.chroot) == (servers, chroot)


@pytest.mark.parametrize("url", ["", "zk:", "zk:/x", "zk:a:0", "zk:a:99999", "zk:a:b", "zk:a:1//x"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"server|HOST:PORT|not a path"):
        ZooKeeperAddress.parse(url)


def test_it_is_told_as_it_was_given() -> None:
    assert str(ZooKeeperAddress.parse("zk:a:1,b:2/c")) == "zk:a:1,b:2/c"
