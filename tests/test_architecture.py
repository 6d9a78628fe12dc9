"""Who may import whom, and who may touch clock, chance and files.

An import that the tables below do not allow fails here. Third-party packages stand in the docstring
of each package's `__init__` ("Third-party packages it may import: ..."); a package without that
line has that of the package around it. Banned names are checked by ruff too; here stand those that
it can't see, and the list of edges that both share.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter

import pytest

from tests.import_circles import circles, import_graph, room_graph
from tests.package_source import PACKAGE, Import, Module, imports, modules
from tests.set_walks import set_walks

MODULES = modules()

MAY_IMPORT: dict[str, set[str]] = {
    "proto": set(),
    "common": {"proto"},
    "wire": {"common", "proto"},
    "schema": {"common", "proto"},
    "ledgers": {"common"},
    "storage": {"ledgers", "common", "proto"},
    "metadata": {"common", "proto"},
    "bookkeeper": {"ledgers", "metadata", "common", "proto"},
    "zookeeper": {"metadata", "common"},
    "managed_ledger": {"ledgers", "metadata", "common", "proto"},
    "server": {
        "managed_ledger",
        "ledgers",
        "storage",
        "metadata",
        "wire",
        "schema",
        "common",
        "proto",
    },
    "admin": {
        "server",
        "managed_ledger",
        "ledgers",
        "storage",
        "metadata",
        "schema",
        "wire",
        "common",
        "proto",
    },
    "console": {
        "admin",
        "server",
        "managed_ledger",
        "metadata",
        "client",
        "schema",
        "common",
    },
    "websocket": {"admin", "client", "wire", "common"},
    "admin_client": {"common"},
    "client": {"wire", "schema", "common", "proto"},
    "blocking": {"client", "schema", "common"},
    "telemetry": {"blocking", "client", "common"},
    "spark": {"client", "schema", "common"},
    "pipeline": {"spark", "client", "admin_client", "common"},
    "embedded_ledgers": {"storage", "ledgers", "metadata", "common", "proto"},
    "embedded_backup": {"embedded_ledgers", "storage", "ledgers", "metadata", "common", "proto"},
    "cluster_stores": {"bookkeeper", "zookeeper", "ledgers", "metadata", "common", "proto"},
    "migration": {"server", "managed_ledger", "ledgers", "metadata", "common", "proto"},
    "policy_logs": {"client", "server", "schema", "common"},
    "ports": {"admin", "server", "common"},
    "web": {"console", "websocket", "admin", "client", "server", "common"},
    "standalone": {
        "web",
        "policy_logs",
        "embedded_ledgers",
        "embedded_backup",
        "ports",
        "admin",
        "server",
        "managed_ledger",
        "bookkeeper",
        "zookeeper",
        "ledgers",
        "storage",
        "metadata",
        "wire",
        "schema",
        "common",
        "proto",
    },
}
"""`cli` and `testing` may import anything; nothing but tests and the pytest plugin imports them.

Parts of `server` below have their place and need not be there yet.
"""

CLIENT_ORDER = (
    "shared",
    "security",
    "messages",
    "brokers",
    "acknowledging",
    "producing",
    "receiving",
    "consuming",
    "many_topics",
    "reading",
    "short_circuit",
)
"""The rooms of `client`: each may import those before it, `client`'s own modules may import all."""
CLIENT_APART = {
    "producing": {"acknowledging"},
    "receiving": {"producing"},
    "consuming": {"producing"},
    "reading": {"producing"},
    "short_circuit": {
        "security",
        "acknowledging",
        "producing",
        "consuming",
        "many_topics",
        "reading",
    },
}
"""Rooms before it that a room of `client` does without."""

SPARK_ORDER = ("shared", "avro", "values", "planning", "reading", "writing")
"""The rooms of `spark`: each may import those before it, `spark`'s own modules may import all."""
SPARK_APART = {
    "avro": {"shared"},
    "planning": {"avro", "values"},
    "reading": {"avro"},
    "writing": {"avro", "planning", "reading"},
}
"""Rooms before it that a room of `spark` does without."""

PIPELINE_ORDER = ("settings", "running", "tables", "resuming", "measuring")
"""The rooms of `pipeline`: each may import those before it, `pipeline`'s own modules all of them."""
PIPELINE_APART = {
    "tables": {"running"},
    "resuming": {"running"},
    "measuring": {"tables", "resuming"},
}
"""Rooms before it that a room of `pipeline` does without."""

SERVER_ORDER = (
    "dispatch",
    "policies",
    "limits",
    "subscriptions",
    "publishing",
    "topics",
    "change_events",
    "upkeep",
    "namespaces",
    "handlers",
    "connection",
)
"""Inside `server`: each may import those before it, `server`'s own modules may import all."""
SERVER_APART = {
    "limits": {"dispatch"},
    "subscriptions": {"policies", "limits"},
    "publishing": {"subscriptions"},
    "namespaces": set(SERVER_ORDER[: SERVER_ORDER.index("namespaces")]),
    "upkeep": {"change_events"},
    "handlers": {"change_events", "upkeep"},
    "connection": {"change_events", "upkeep"},
}
"""Rooms before it that a room of `server` does without."""
SERVER_ASIDE = {
    "hooks": {"dispatch", "policies", "subscriptions", "publishing", "topics", "connection"},
    "schema_registry": {
        "policies",
        "topics",
        "change_events",
        "namespaces",
        "handlers",
        "connection",
    },
    "security": {
        "handlers",
        "connection",
        "settings",
    },  # and `admin`, which is above all of `server`
    "settings": set(),
    "delayed": {"subscriptions", "topics"},
    "compaction": {
        "subscriptions",
        "topics",
        "change_events",
        "upkeep",
        "namespaces",
        "connection",
    },
    "load": {"namespaces", "connection"},
    "transactions": {"subscriptions", "publishing", "topics", "connection"},
    "replication": {"upkeep"},
}
"""Sub-packages off that line, and which of the others may use them."""
SERVER_ASIDE_MAY_IMPORT = {
    "compaction": {"dispatch"},
    "delayed": {"dispatch"},
    "load": {"dispatch", "policies", "limits", "subscriptions", "publishing", "topics"},
    "replication": {"dispatch", "policies", "limits", "subscriptions", "publishing", "topics"},
}
"""What of that line they may import; those that don't stand here import no other part."""

MANAGED_LEDGER_ORDER = ("log", "cursors")
"""The rooms of `managed_ledger`, in the same way."""

COMMON_ROOMS = {"loops", "disks", "network"}
"""The rooms of `common` know nothing of each other; all may use the modules of `common` itself."""

STORAGE_ORDER = ("shared", "journal", "index", "entry_logs", "inspection")
STORAGE_APART = {"index": {"journal"}}
"""The rooms of `storage`, in the same way."""

BOOKKEEPER_ORDER = (
    "protocol",
    "metadata",
    "placement",
    "bookies",
    "cluster",
    "reading",
    "writing",
)
BOOKKEEPER_APART = {"metadata": {"protocol"}, "placement": {"protocol"}}
"""The rooms of `bookkeeper`, in the same way."""

SCHEMA_ORDER = ("values", "avro", "classes")
"""The rooms of `schema`, in the same way."""

MAX_MODULES = 25
"""Of one room; its `__init__` is not counted."""

SECURITY_MAY_IMPORT = {"common", "metadata"}
"""Of the other packages: who may do what is decided without topics, wire or storage."""

SETTINGS_READERS = {
    "pulsar_py.server.authentication_parts",
    "pulsar_py.server.broker",
    "pulsar_py.server.broker_settings",
    "pulsar_py.server.cluster_load",
    "pulsar_py.server.security_parts",
    "pulsar_py.standalone",
    "pulsar_py.web",
    "pulsar_py.cli.standalone",
    "pulsar_py.testing.restartable_broker",
    "pulsar_py.cli.broker",
}
"""Who knows the class BrokerConfig; everybody else is handed plain values."""
SETTINGS_MODULES = {
    "pulsar_py.server.config",
    "pulsar_py.server.settings.declaring",
    "pulsar_py.server.settings.cluster",
    "pulsar_py.server.settings.security",
    "pulsar_py.server.settings.cluster_security",
    "pulsar_py.server.settings.server",
    "pulsar_py.server.settings.storage",
    "pulsar_py.server.settings.hooks",
    "pulsar_py.server.settings.load",
    "pulsar_py.server.settings.openid",
    "pulsar_py.server.settings.proxies",
    "pulsar_py.server.settings.rates",
    "pulsar_py.server.settings.topics",
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
        if package in {"", "__main__", "cli", "testing"}:
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


def test_security_stands_on_metadata_alone() -> None:
    wrong = [
        str(each)
        for module in MODULES
        if module.name.startswith("pulsar_py.server.security.")
        for each in ours(module)
        if package_of(each.target) not in SECURITY_MAY_IMPORT
        and not each.target.startswith("pulsar_py.server.security.")
    ]
    assert not wrong, "\n".join(wrong)


def _may_use(part: str, target: str) -> bool:
    if part in {"", target}:
        return True
    if target in SERVER_ASIDE:
        return part in SERVER_ASIDE[target]
    if target not in SERVER_ORDER or target in SERVER_APART.get(part, set()):
        return False  # a module of the parent, or a room apart
    if part in SERVER_ASIDE:
        return target in SERVER_ASIDE_MAY_IMPORT.get(part, set())
    return SERVER_ORDER.index(target) < SERVER_ORDER.index(part)


NONE_APART: dict[str, set[str]] = {}
ROOMS = {
    "schema": (SCHEMA_ORDER, NONE_APART),
    "bookkeeper": (BOOKKEEPER_ORDER, BOOKKEEPER_APART),
    "storage": (STORAGE_ORDER, STORAGE_APART),
    "client": (CLIENT_ORDER, CLIENT_APART),
    "managed_ledger": (MANAGED_LEDGER_ORDER, NONE_APART),
    "pipeline": (PIPELINE_ORDER, PIPELINE_APART),
    "spark": (SPARK_ORDER, SPARK_APART),
}


@pytest.mark.parametrize("package", ROOMS)
def test_rooms_import_in_order(package: str) -> None:
    order, apart = ROOMS[package]
    wrong = []
    for module in MODULES:
        parts = module.name.split(".")
        if parts[:2] != ["pulsar_py", package] or not (len(parts) > 3 or module.is_package):
            continue
        room = parts[2] if len(parts) > 2 else ""
        for each in ours(module):
            target = each.target.split(".")
            is_allowed = _may_enter(room, target[2], order, apart.get(room, set()))
            if target[:2] == ["pulsar_py", package] and not is_allowed:
                wrong.append(str(each))
    assert not wrong, "\n".join(wrong)


def _may_enter(room: str, target: str, order: tuple[str, ...], apart: set[str]) -> bool:
    if room in {"", target}:
        return True
    if target not in order or target in apart:
        return False  # a module of the parent, or a room apart
    return order.index(target) < order.index(room)


def test_the_rooms_of_the_server_are_those_of_the_table() -> None:
    rooms = rooms_of("server")
    assert rooms >= set(SERVER_ORDER)
    assert rooms <= {*SERVER_ORDER, *SERVER_ASIDE}, "a room without a place in the tables"


def rooms_of(package: str) -> set[str]:
    return {
        module.name.split(".")[2]
        for module in MODULES
        if module.name.startswith(f"pulsar_py.{package}.") and module.name.count(".") > 2
    }


def test_no_room_has_many_modules() -> None:
    counts = Counter(module.name.rpartition(".")[0] for module in MODULES if not module.is_package)
    crowded = {name: count for name, count in counts.items() if count > MAX_MODULES}
    assert not crowded


@pytest.mark.parametrize("package", ROOMS)
def test_rooms_are_those_of_the_table(package: str) -> None:
    assert rooms_of(package) == set(ROOMS[package][0])


def test_the_rooms_of_common_do_without_each_other() -> None:
    assert rooms_of("common") == COMMON_ROOMS
    wrong = []
    for module in MODULES:
        parts = module.name.split(".")
        if parts[:2] != ["pulsar_py", "common"] or len(parts) < 4:
            continue
        for each in ours(module):
            target = each.target.split(".")
            if target[2] in COMMON_ROOMS - {parts[2]}:
                wrong.append(str(each))
    assert not wrong, "\n".join(wrong)


# --- circles -----------------------------------------------------------------------------------

GRAPH = import_graph(MODULES)

CIRCLES: dict[str, dict[str, str]] = {
    "admin": {
        "http_connection http_server": "a server makes connections, which count with it and end",
    },
    "cli.pipeline": {
        "command jobs options": "a command's jobs, loaded when it is run, raise its errors",
    },
    "client.consuming": {
        (
            "consumer consumer_config consumer_events consumer_interceptor consumer_session "
            "subscribe_command"
        ): "listeners and interceptors in the options are called with the consumer",
    },
    "server.publishing": {
        "producer requests": "a request's `on_ready` is called with the producer, which keeps its request",
    },
    "server.subscriptions": {
        "consumer subscription": "messages go from a subscription to its consumers, acknowledgements back",
    },
    "testing": {
        "hostile_ledger_client hostile_ledgers": "the bookies make clients, which call them",
    },
}
"""Modules of one room that know each other, and why; late imports and those for the type checker count."""


def test_rooms_do_not_import_each_other_in_a_circle() -> None:
    packages = {module.name for module in MODULES if module.is_package}
    found = circles(room_graph(GRAPH, packages))
    assert not found, "\n".join(" <-> ".join(sorted(each)) for each in found)


def test_circles_within_a_room_are_those_of_the_table() -> None:
    listed = {
        frozenset(f"pulsar_py.{room}.{name}" for name in names.split())
        for room, lines in CIRCLES.items()
        for names in lines
    }
    found = {frozenset(each) for each in circles(GRAPH)}
    new = [" ".join(sorted(each)) for each in found - listed]
    gone = [" ".join(sorted(each)) for each in listed - found]
    assert not new, "\n".join(["not listed:", *new])
    assert not gone, "\n".join(["listed, and open now:", *gone])


def test_imports_for_the_checker_and_late_ones_count_in_a_circle() -> None:
    first = Module(
        PACKAGE / "a.py",
        "pulsar_py.a",
        ast.parse("if TYPE_CHECKING:\n    from pulsar_py.b import B"),
    )
    second = Module(
        PACKAGE / "b.py", "pulsar_py.b", ast.parse("def f():\n    from pulsar_py.a import A")
    )
    third = Module(PACKAGE / "c.py", "pulsar_py.c", ast.parse("import pulsar_py.a"))
    found = circles(import_graph([first, second, third]))
    assert found == [{"pulsar_py.a", "pulsar_py.b"}]


HTTP_CLIENTS = ("http.client", "urllib.request", "pulsar_py.common.network.http_client")


def test_commands_call_rest_with_the_admin_client_alone() -> None:
    wrong = [
        str(each)
        for module in MODULES
        if module.name.startswith("pulsar_py.cli.")
        for each in imports(module)
        if each.target.startswith(HTTP_CLIENTS)
    ]
    assert not wrong, "\n".join(wrong)


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


IMPORTED_AS = {
    "protobuf": "google",
    "google-re2": "re2",
    "PyJWT": "jwt",
    "libpass": "passlib",
    "prometheus-client": "prometheus_client",
    "pytest-asyncio": "pytest_asyncio",
}
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
    "pulsar_py.common.disks.directory_lock": "a directory's lock",
    "pulsar_py.common.disks.file_writes": "how the real Disk writes",
    "pulsar_py.common.disks.local_disk": "the real Disk",
    "pulsar_py.common.disks.slow_removal": "how the real Disk removes large files",
    "pulsar_py.common.disks.tool_files": "what tools write as a whole",
    "pulsar_py.metadata.sqlite_file": "SQLite's file",
    "pulsar_py.metadata.sqlite_store": "SQLite's file",
    "pulsar_py.cli.standalone": "the settings file",
    "pulsar_py.cli.straight_imports": "the bytecode of our own modules",
    "pulsar_py.standalone": "makes the data directory",
}
FOREIGN_JSON = {
    "pulsar_py.common.foreign_json": "reads what others wrote, within limits",
    "pulsar_py.schema.json_schema": "payloads, in which Python's clients write NaN; all is caught",
    "pulsar_py.spark.values.payload_codecs": "the same, by the batch",
    "pulsar_py.storage.shared.manifest": "its own file, behind a checksum",
    "pulsar_py.pipeline.resuming.checkpoints": "files that Spark and it wrote",
    "pulsar_py.pipeline.tables.delta": "Delta's description of a table",
    "pulsar_py.pipeline.resuming.first_run": "its own file",
    "pulsar_py.pipeline.resuming.offsets": "files that Spark wrote",
    "pulsar_py.pipeline.lake": "its own files",
    "pulsar_py.pipeline.tables.manifest": "its own files",
}
TASKS = {"pulsar_py.common.loops.tasks": "the one way to start a task"}
CLOCKS = {"pulsar_py.common.loops.clock": "the real clock"}
TLS_CONTEXTS = {
    "pulsar_py.common.network.tls": "makes all TLS contexts of clients",
    "pulsar_py.server.security.tls": "makes all TLS contexts of listening ports",
}
HTTP = {
    "pulsar_py.common.network.http_client": "the one HTTP client",
    "pulsar_py.admin_client.plain_requests": "calls that block, without the time to import asyncio",
    "pulsar_py.admin.http_connection": "the connections of the one HTTP server",
}
HTTP_MODULES = re.compile(
    r"(h11|http\.client|http\.server|urllib\.request|urllib3|requests|httpx|aiohttp)(\..*)?"
)
"""What speaks HTTP, ours and others'; `http` by itself has the names of statuses."""

BANNED: tuple[tuple[re.Pattern[str], dict[str, str]], ...] = (
    (re.compile(r"open|aiofiles\..*|os\.(open|fsync|fdatasync|pwrite|writev|unlink)"), FILES),
    (re.compile(r"json\.loads?"), FOREIGN_JSON),
    (re.compile(r"(asyncio|loop)\.(create_task|ensure_future)"), TASKS),
    (re.compile(r"time\.(time|time_ns|monotonic|monotonic_ns|perf_counter|sleep)"), CLOCKS),
    (re.compile(r"random\.(random|randint|choice|shuffle|seed|uniform|randrange)"), {}),
    (re.compile(r"datetime\.(now|utcnow|today)"), {}),
    (re.compile(r"(ssl\.)?(SSLContext|(_?create_\w*|_ssl_)context|wrap_socket)"), TLS_CONTEXTS),
)


def calls(module: Module) -> list[tuple[str, int]]:
    return [
        (ast.unparse(node.func), node.lineno)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    ]


def test_clock_chance_files_tasks_and_tls_belong_to_the_edges() -> None:
    wrong = []
    for module in MODULES:
        if package_of(module.name) == "testing":
            continue
        for name, line in calls(module):
            for banned, edges in BANNED:
                if banned.fullmatch(name) and module.name not in edges:
                    wrong.append(f"{module.name}:{line} calls {name}")
    assert not wrong, "\n".join(wrong)


def test_one_module_is_an_http_client_and_one_a_server() -> None:
    wrong = [
        str(each)
        for module in MODULES
        if module.name not in HTTP
        for each in imports(module)
        if HTTP_MODULES.fullmatch(each.target)
    ]
    assert not wrong, "\n".join(wrong)


_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def test_broad_excepts_are_few_and_say_why() -> None:
    """One in a thousand lines of code at most; the reason stands on the line, or on the one below."""
    lines_count = 0
    found, silent = [], []
    for module in MODULES:
        lines = module.path.read_text("utf-8").splitlines()
        lines_count += sum(bool(each.split("#")[0].strip()) for each in lines)
        for node in ast.walk(module.tree):
            if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node, clean=False)):
                lines_count -= sum(bool(each.strip()) for each in text.splitlines())
            if not isinstance(node, ast.ExceptHandler):
                continue
            if node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"}:
                found.append(f"{module.path}:{node.lineno}")
                near = lines[node.lineno - 1].partition("#")[2], lines[node.lineno].strip()
                if not near[0] and not near[1].startswith("#"):
                    silent.append(found[-1])
    assert not silent, "\n".join(silent)
    assert len(found) * 1000 < lines_count, f"{len(found)} in {lines_count} lines"


SET_ELEMENTS = {
    *(
        "str",
        "bytes",
        "int",
        "Any",
        "tuple[int, int, int]",
        "EntryKey",
        "MoveKey",
        "BrokerAddress",
        "Address",
    ),
    *("State", "SubscriptionType", "BaseCommand.Type.ValueType"),
    "ForkAware",  # walked in a forked child, where order is no matter
}
"""What a set may hold: values, and not objects, which hash by where they are in memory."""


def test_sets_hold_values() -> None:
    """Whoever walks a set of objects does it in another order in each process: a dict keeps one."""
    wrong = [
        f"{module.name}:{node.lineno} set of {ast.unparse(node.slice)}: take a dict"
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Subscript)
        and ast.unparse(node.value).rpartition(".")[2] in {"set", "frozenset", "WeakSet"}
        and ast.unparse(node.slice) not in SET_ELEMENTS
    ]
    assert not wrong, "\n".join(wrong)


REPLAYED = (
    *("common", "wire", "schema", "ledgers", "storage", "metadata", "bookkeeper", "zookeeper"),
    *("managed_ledger", "server", "admin", "websocket", "client", "testing"),
)
"""Packages of which simulations run a part."""


def test_nobody_goes_through_a_set_of_texts() -> None:
    """Its order differs in each process, and a simulation that hangs on it does not replay."""
    walks = [
        f"{module.name}:{line} goes through the set {text}: take a dict"
        for module in MODULES
        if module.name.split(".")[1:2] and module.name.split(".")[1] in REPLAYED
        for line, text in set_walks(module.tree)
    ]
    assert not walks, "\n".join(walks)


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        ("for each in {'a', 'b'}: tell(each)", True),
        ("def f(names: set[str]):\n    return [ask(each) for each in names]", True),
        (
            "class C:\n    def f(self):\n        self.a: set[str] = set()\n        list(self.a)",
            True,
        ),
        ("names = {each.name for each in them}\nask(*names)", True),
        ("names = set(them)\nnames.pop()", True),
        ("names = set(them)\nfor each in sorted(names): ask(each)", False),
        ("names = set(them)\nreturn_ = all(each in others for each in names)", False),
        ("def f(ids: set[int]):\n    for each in ids: ask(each)", False),
        ("def f(names: set[str]): ...\ndef g(names: list[str]):\n    return list(names)", False),
    ],
)
def test_walks_through_sets_are_found(source: str, *, is_found: bool) -> None:
    assert bool(set_walks(ast.parse(source))) is is_found


@pytest.mark.parametrize("edges", [FILES, FOREIGN_JSON, TASKS, CLOCKS, TLS_CONTEXTS, HTTP])
def test_the_lists_of_edges_name_modules_that_exist(edges: dict[str, str]) -> None:
    assert not edges.keys() - {module.name for module in MODULES}


# --- names -------------------------------------------------------------------------------------

SAME_NAMES: dict[str, str] = {
    **dict.fromkeys(
        (
            "BacklogQuota",
            "ClusterData",
            "DispatchRate",
            "PartitionedTopicMetadata",
            "PersistencePolicies",
            "PublishRate",
            "ResetCursorData",
            "ResourceGroup",
            "SubscribeRate",
            "TenantInfo",
        ),
        "Pulsar's name: what the broker keeps, and the object of the REST API that its client has",
    ),
    "Backlog": "entries of a topic held against a quota, of a query, and of traffic that is watched",
    "Block": "a block of the journal, and one of a playbook's text",
    "Client": "public in `pulsar_py` and, without `await`, in `pulsar_py.blocking`",
    "ClientOptions": "the arguments of `Client`, which is public, and how Spark reaches a cluster",
    "Consumer": "Pulsar's name on both sides: the application's, and what the broker has of it",
    "InitialPosition": "public in the client; managed_ledger may not import that, and stores the same choice",
    "LedgerInfo": "what a store knows of a ledger, and what the REST API shows of one",
    "LedgerRecord": "a ledger in a topic's list, and a ledger in the store's index",
    "MultiTopicsConsumer": "public in `pulsar_py` and, without `await`, in `pulsar_py.blocking`",
    "PartitionedProducer": "public in `pulsar_py` and, without `await`, in `pulsar_py.blocking`",
    "PatternConsumer": "public in `pulsar_py` and, without `await`, in `pulsar_py.blocking`",
    "Policy": "one row of the table of REST policies, of namespaces and of topics",
    "Producer": "Pulsar's name on both sides: the application's, and what the broker has of it",
    "ReadAhead": "fetches what a cursor will want next, and what a Spark task will",
    "Reader": "public in `pulsar_py` and, without `await`, in `pulsar_py.blocking`",
    "Run": "neighbouring entries of an entry log, and what one run of a pipeline decides",
    "SendResult": "public in `pulsar_py` and, without `await`, in `pulsar_py.blocking`",
    "State": "of a managed ledger, and of a connection's protocol; each inside its table of transitions",
    "SubscriptionStats": "Pulsar's name: what the broker counts, and what the REST client reads",
    "TableView": "public in `pulsar_py` and, without `await`, in `pulsar_py.blocking`",
    "Topic": "the broker's, and what an inspection of stored ledgers finds of one",
    "TopicListWatcher": "Pulsar's name on both sides of WATCH_TOPIC_LIST",
    "TopicPattern": "the client's look at a pattern, and the broker's with re2 and a limit",
    "TopicStats": "Pulsar's name: what the broker counts, and what the REST client reads",
    "Topics": "REST resources, what an inspection finds, and the topics that a Spark option names",
    "Verdict": "of a filter on an entry, and of Spark's exactly-once writer on a row",
}
"""Public classes that share a name, and why. What has a name of its own leaves the list."""


def test_public_class_names_are_unique_or_have_a_reason() -> None:
    homes: dict[str, list[str]] = {}
    for module in MODULES:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module.name)
    shared = {name: found for name, found in homes.items() if len(found) > 1}
    new = [f"{name}: {', '.join(shared[name])}" for name in shared.keys() - SAME_NAMES.keys()]
    gone = sorted(SAME_NAMES.keys() - shared.keys())
    assert not new, "\n".join(["not listed:", *new])
    assert not gone, "\n".join(["listed, and unique now:", *gone])


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


def test_each_package_says_what_comes_in_and_what_goes_out() -> None:
    """The package itself has an example instead, and `proto` is generated."""
    ways = (
        re.compile(r"\bin(:| comes| and out:)|comes in", re.IGNORECASE),
        re.compile(r"\bout(:| goes)|goes out", re.IGNORECASE),
    )
    wrong = []
    for module in MODULES:
        if module.is_package and module.name not in {"pulsar_py", "pulsar_py.proto"}:
            docstring = ast.get_docstring(module.tree) or ""
            if not all(way.search(docstring) for way in ways):
                wrong.append(module.name)
    assert not wrong, wrong


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
