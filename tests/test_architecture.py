"""Who may import whom, and who may touch clock, chance and files.

The table is that of DESIGN: an import in any other direction fails here. Third-party packages stand
in the docstring of each package's `__init__` ("Third-party packages it may import: ..."); a package without that line has
that of the package around it. Banned names are checked by ruff too; here stand those that it can't
see, and the list of edges that both share.
"""

from __future__ import annotations

import ast
import re
import sys

import pytest

from tests.package_source import PACKAGE, Import, Module, imports, modules

MODULES = modules()

MAY_IMPORT: dict[str, set[str]] = {
    "proto": set(),
    "common": {"proto"},
    "wire": {"common", "proto"},
    "schema": {"common", "proto"},
    "storage": {"common", "proto"},
    "metadata": {"common", "proto"},
    "managed_ledger": {"storage", "metadata", "common", "proto"},
    "server": {"managed_ledger", "storage", "metadata", "wire", "schema", "common", "proto"},
    "admin": {
        "server",
        "managed_ledger",
        "storage",
        "metadata",
        "schema",
        "wire",
        "common",
        "proto",
    },
    "admin_client": {"common"},
    "client": {"wire", "schema", "common", "proto"},
    "spark": {"client", "schema", "common"},
    "pipeline": {"spark", "client", "admin_client", "common"},
    "standalone": {
        "admin",
        "server",
        "managed_ledger",
        "storage",
        "metadata",
        "wire",
        "schema",
        "common",
        "proto",
    },
}
"""`cli` and `testing` may import anything; nothing but tests and the pytest plugin imports them."""

SERVER_ORDER = ("dispatch", "topics", "namespaces", "connection")
"""Inside `server`: each may import those before it, `server`'s own modules may import all."""
SERVER_ASIDE = {
    "schema_registry": {"topics", "namespaces", "connection"},
    "security": {"connection"},
    "transactions": {"topics", "connection"},
    "replication": {"topics", "connection"},
}
"""Sub-packages off that line, and which of the others may use them."""

SETTINGS_READERS = {"pulsar_py.server.broker", "pulsar_py.standalone", "pulsar_py.cli.standalone"}
"""Who knows the class BrokerConfig; everybody else is handed plain values."""
SETTINGS_MODULES = {
    "pulsar_py.server.config",
    "pulsar_py.server.settings",
    "pulsar_py.server.settings_server",
    "pulsar_py.server.settings_storage",
    "pulsar_py.server.settings_topics",
    "pulsar_py.server.ignored_settings",
    "pulsar_py.server.config_reference",
}


def package_of(name: str) -> str:
    """`pulsar_py.server.topics.topic` is of `server`; the package itself is of ``."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


def ours(module: Module) -> list[Import]:
    return [each for each in imports(module) if each.target.split(".")[0] == "pulsar_py"]


def test_packages_import_downwards_only() -> None:
    wrong = []
    for module in MODULES:
        package = package_of(module.name)
        if package in {"", "cli", "testing"}:
            continue
        assert package in MAY_IMPORT, f"{module.name}: not in the table of directions"
        allowed = MAY_IMPORT[package] | {package}
        wrong += [str(each) for each in ours(module) if package_of(each.target) not in allowed]
    assert not wrong, "\n".join(wrong)


def test_nobody_imports_testing_or_cli() -> None:
    wrong = [
        str(each)
        for module in MODULES
        for each in ours(module)
        if package_of(each.target) in {"testing", "cli"}
        and package_of(module.name) != package_of(each.target)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_parts_of_the_server_import_in_order() -> None:
    wrong = []
    for module in MODULES:
        parts = module.name.split(".")
        if parts[:2] != ["pulsar_py", "server"] or not (len(parts) > 3 or module.is_package):
            continue
        part = parts[2] if len(parts) > 2 else ""
        for each in ours(module):
            target = each.target.split(".")
            if target[:2] == ["pulsar_py", "server"] and not _may_use(part, target[2]):
                wrong.append(str(each))
    assert not wrong, "\n".join(wrong)


def _may_use(part: str, target: str) -> bool:
    if part in {"", target}:
        return True
    if target in SERVER_ASIDE:
        return part in SERVER_ASIDE[target]
    if target not in SERVER_ORDER:
        return False  # a module of the parent
    if part in SERVER_ASIDE:
        return part == "replication"
    return SERVER_ORDER.index(target) < SERVER_ORDER.index(part)


def test_settings_are_read_by_the_composition_alone() -> None:
    wrong = [
        str(each)
        for module in MODULES
        for each in ours(module)
        if any(each.target.startswith(name + ".") for name in SETTINGS_MODULES)
        and module.name not in SETTINGS_READERS | SETTINGS_MODULES
    ]
    assert not wrong, "\n".join(wrong)


# --- third-party packages ----------------------------------------------------------------------


IMPORTED_AS = {"protobuf": "google", "google-re2": "re2", "pytest-asyncio": "pytest_asyncio"}
"""What packages are imported as, where that is not their name."""


def allowed_third_party(module: Module) -> set[str]:
    """What the nearest docstring with the line says."""
    by_name = {each.name: each for each in MODULES}
    name = module.name
    while name:
        found = re.search(r"may import: ([^.]*)\.", by_name[name].docstring.replace("\n", " "))
        if found and (by_name[name].is_package or name == module.name):
            words = re.findall(r"[\w-]+", found[1])
            return {IMPORTED_AS.get(word, word) for word in words}
        name = name.rpartition(".")[0]
    return set()


def test_third_party_packages_are_named_where_they_may_be_used() -> None:
    wrong = []
    for module in MODULES:
        allowed = allowed_third_party(module) | {"pulsar_py", *sys.stdlib_module_names}
        wrong += [str(each) for each in imports(module) if each.target.split(".")[0] not in allowed]
    assert not wrong, "\n".join(wrong)


# --- banned names ------------------------------------------------------------------------------

FILES = {
    "pulsar_py.common.local_disk": "the real Disk",
    "pulsar_py.metadata.sqlite_file": "SQLite's file",
    "pulsar_py.metadata.sqlite_store": "SQLite's file",
    "pulsar_py.cli.standalone": "the settings file",
    "pulsar_py.standalone": "makes the data directory",
}
TASKS = {"pulsar_py.common.tasks": "the one way to start a task"}
CLOCKS = {"pulsar_py.common.clock": "the real clock"}

BANNED: tuple[tuple[re.Pattern[str], dict[str, str]], ...] = (
    (re.compile(r"open|aiofiles\..*|os\.(open|fsync|fdatasync|pwrite|writev|unlink)"), FILES),
    (re.compile(r"(asyncio|loop)\.(create_task|ensure_future)"), TASKS),
    (re.compile(r"time\.(time|time_ns|monotonic|monotonic_ns|perf_counter|sleep)"), CLOCKS),
    (re.compile(r"random\.(random|randint|choice|shuffle|seed|uniform|randrange)"), {}),
    (re.compile(r"datetime\.(now|utcnow|today)"), {}),
)


def calls(module: Module) -> list[tuple[str, int]]:
    return [
        (ast.unparse(node.func), node.lineno)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    ]


def test_clock_chance_files_and_tasks_belong_to_the_edges() -> None:
    wrong = []
    for module in MODULES:
        if package_of(module.name) == "testing":
            continue
        for name, line in calls(module):
            for banned, edges in BANNED:
                if banned.fullmatch(name) and module.name not in edges:
                    wrong.append(f"{module.name}:{line} calls {name}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("edges", [FILES, TASKS, CLOCKS])
def test_the_lists_of_edges_name_modules_that_exist(edges: dict[str, str]) -> None:
    assert not edges.keys() - {module.name for module in MODULES}


# --- form --------------------------------------------------------------------------------------


def test_an_init_only_re_exports() -> None:
    wrong = []
    for module in MODULES:
        if not module.is_package or module.path.parent == PACKAGE:
            continue
        for node in module.tree.body:
            is_all = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
            is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            is_import = isinstance(node, ast.Import | ast.ImportFrom)
            if not (is_all or is_docstring or is_import or _exports_lazily(node)):
                wrong.append(f"{module.path}:{node.lineno}")
    assert not wrong, "\n".join(wrong)


def _exports_lazily(node: ast.stmt) -> bool:
    """What a package needs to re-export on first use: PEP 562, and imports for the checker."""
    if isinstance(node, ast.FunctionDef):
        return node.name in {"__getattr__", "__dir__"}
    if not isinstance(node, ast.If):
        return False
    if ast.unparse(node.test) == "not TYPE_CHECKING":  # what would take any name before a checker
        return all(_exports_lazily(each) for each in node.body)
    return ast.unparse(node.test) == "TYPE_CHECKING"


def test_every_module_says_what_it_is_for() -> None:
    short = [module.name for module in MODULES if len(module.docstring) < 20]
    assert not short


def test_functions_fit_a_screen() -> None:
    long = []
    for module in MODULES:
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            lines = (node.end_lineno or 0) - first.lineno + 1
            if lines > 70 and f"{module.name}.{node.name}" not in TABLES:
                long.append(f"{module.name}.{node.name}: {lines} lines")
    assert not long, "\n".join(long)


TABLES = {
    "pulsar_py.admin.resources.topic_stats_json.subscription_json": "one line a JSON field",
}
