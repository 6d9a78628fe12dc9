from __future__ import annotations

from collections import OrderedDict

from pulsar_py.common.recent import remember


def test_the_oldest_goes_and_what_comes_again_is_new() -> None:
    kept: OrderedDict[str, int] = OrderedDict()
    for key, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        remember(kept, key, value, 2)
    assert kept == OrderedDict(a=3, c=4)
