from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from pulsar_py.common.late_imports import collecting_nothing, import_all


def test_modules_are_loaded_without_the_collector() -> None:
    with collecting_nothing():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ImportError), collecting_nothing():
        raise ImportError
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collecting_nothing():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_is_imported_for_good_is_never_looked_through() -> None:
    code = (
        "import gc\n"
        "from pulsar_py.common.late_imports import import_all, importing_for_good\n"
        "import_all(['calendar'])\n"
        "print(gc.get_freeze_count(), gc.isenabled())\n"
        "looked = []\n"
        "gc.callbacks.append(lambda phase, info: looked.append(phase))\n"
        "with importing_for_good(): import tarfile, pdb\n"
        "made = [[] for _ in range(10)]\n"
        "print(gc.get_freeze_count() > 0, looked, gc.isenabled())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["0 True", "True [] True"]


def test_all_modules_are_imported_or_the_missing_one_is_named() -> None:
    code = (
        "import sys\n"
        "from pulsar_py.common.late_imports import import_all\n"
        "import_all(['wave', 'sched'])\n"
        "print('wave' in sys.modules, 'sched' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        import_all(["no_such_module"])
    assert gc.isenabled()
