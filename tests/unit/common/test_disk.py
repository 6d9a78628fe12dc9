"""What every Disk does is in tests/contracts/test_disk.py; here: the interface is one."""

from __future__ import annotations

import pytest

from pulsar_py.common.disk import AppendFile, Disk, ReadFile


@pytest.mark.parametrize("interface", [Disk, AppendFile, ReadFile])
def test_an_interface_can_not_be_made(interface: type) -> None:
    with pytest.raises(TypeError, match="abstract"):
        interface()
