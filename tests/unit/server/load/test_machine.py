from __future__ import annotations

import os
import threading
from pathlib import Path

from pulsar_py.server.load.machine import (
    MEBIBYTE,
    _group_limits,
    network_kilobits,
    no_process,
    this_process,
)


def test_a_process_is_measured() -> None:
    machine = this_process()
    used = machine()
    assert used.cpu_seconds > 0
    assert 1 < used.memory_mebibytes < used.memory_limit_mebibytes
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / MEBIBYTE
    assert used.memory_limit_mebibytes <= physical
    assert no_process().cpu_seconds == 0


def test_the_processor_time_is_that_of_the_calling_thread() -> None:
    machine = this_process()

    def work() -> None:
        sum(number * number for number in range(2_000_000))

    before = machine().cpu_seconds
    other = threading.Thread(target=work)
    other.start()
    other.join()
    beside = machine().cpu_seconds - before
    work()
    assert machine().cpu_seconds - before > 4 * beside


def test_the_limit_is_that_of_the_control_group_of_either_version(tmp_path: Path) -> None:
    own, root = tmp_path / "cgroup", tmp_path / "groups"
    for path, text in (
        ("memory.max", "max"),
        ("pod/one/memory.max", str(512 * MEBIBYTE)),
        ("memory/v1/memory.limit_in_bytes", str(256 * MEBIBYTE)),
        ("memory/memory.limit_in_bytes", "9223372036854771712"),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    own.write_text("9:name=systemd:/x\n4:memory,cpu:/v1\n0::/pod/one\nbroken\n")
    assert min(_group_limits(own, root)) == 256.0
    assert 512.0 in list(_group_limits(own, root))
    assert list(_group_limits(tmp_path / "none", tmp_path / "none")) == []


def test_the_network_is_as_fast_as_its_cards_say(tmp_path: Path) -> None:
    assert network_kilobits(tmp_path) is None
    for name, text in (("eth0", "1000"), ("eth1", "10000"), ("eth2", "-1"), ("lo", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "speed").write_text(text)
    assert network_kilobits(tmp_path) == 11_000_000.0
