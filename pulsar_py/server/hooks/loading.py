"""Loads users' classes by the names that settings and policies have."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import Final, TypeVar

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.failures import OnFailure

T = TypeVar("T")

_OF_DIRECTORIES: Final = "_pulsar_py_hooks."
"""Modules of a directory stand in `sys.modules` under this, so that they hide nobody's."""


def load_class(name: str, kind: type[T], setting: str) -> type[T]:
    """The class `module.Class`, which has to be derived from `kind`.

    What the module itself raises while it is imported is raised.

    Raises:
        ConfigurationError: There is none; `setting` says where the name stands.
    """
    module_name, _, class_name = name.rpartition(".")
    if not module_name:
        raise ConfigurationError(f"{setting}: {name} is not the name of a class, as module.Class")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigurationError(f"{setting}: {name}: {error}") from error
    return _class_of(module, class_name, kind, f"{setting}: {name}")


def load_from_directory(name: str, directory: str, kind: type[T], setting: str) -> type[T] | None:
    """The class `module.Class` of a file `module.py` in a directory; None without such a file.

    Raises:
        ConfigurationError: The file has no such class.
    """
    module_name, _, class_name = name.rpartition(".")
    if not directory or not module_name or "." in module_name:
        return None
    full_name = f"{_OF_DIRECTORIES}{directory}.{module_name}"
    module = sys.modules.get(full_name)
    if module is None:
        importlib.invalidate_caches()  # the directory, or the file, may be newer than the last look
        spec = PathFinder.find_spec(full_name, [directory])
        if spec is None or spec.loader is None:
            return None
        module = module_from_spec(spec)
        sys.modules[full_name] = module
        with OnFailure(lambda: sys.modules.pop(full_name, None)):
            spec.loader.exec_module(module)
    return _class_of(module, class_name, kind, f"{setting}: {name}")


def _class_of(module: ModuleType, class_name: str, kind: type[T], what: str) -> type[T]:
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        raise ConfigurationError(f"{what}: {module.__name__} has no class {class_name}")
    if not issubclass(found, kind):
        raise ConfigurationError(
            f"{what} is no {kind.__name__}: derive it from {kind.__module__}.{kind.__name__}"
        )
    return found
