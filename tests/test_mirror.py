"""Each module has its own test module, at the same place under `tests/unit`."""

from __future__ import annotations

from pathlib import Path

from tests.package_source import PACKAGE, ROOT, modules

UNIT = ROOT / "tests" / "unit"

COVERED_ELSEWHERE = {
    "__main__.py": "tests/unit/cli/test_main.py runs it",
    "cli/__main__.py": "tests/unit/cli/test_main.py runs it",
    "common/buffer.py": "the name of a type",
    "common/loops/clock.py": "an edge of three lines; virtual time stands in for it everywhere",
    "admin/upgrades.py": "interfaces",
    "admin/http_connection.py": "tests/unit/admin/test_http_server.py, over real sockets",
    "ledgers/ids.py": "an interface",
    "metadata/store.py": "an interface; tests/contracts has one suite for all implementations",
    "server/change_events/event_parts.py": "a value and an interface",
    "server/handlers/command_connection.py": "interfaces",
    "server/dispatch/client_connection.py": "an interface",
    "server/schema_registry/schema_policies.py": "a value",
    "server/topics/topic_state.py": "names of states",
    "server/subscriptions/watched_consumer.py": "tests/unit/settings/test_interceptors.py",
    "server/publishing/watched_publishing.py": "tests/unit/settings/test_interceptors.py",
    "server/connection/watched_cnx.py": "tests/unit/settings/test_interceptors.py",
    "client/consuming/consumer_events.py": "an interface",
    "client/consuming/interceptor_calls.py": "an interface",
    "client/brokers/handlers.py": "interfaces",
}
"""Modules without a test module of their own, and why; what gets one has to leave the list."""


def expected(path: Path) -> Path:
    relative = path.relative_to(PACKAGE)
    return UNIT / relative.parent / f"test_{relative.stem}.py"


def mirrored() -> list[Path]:
    return [
        module.path
        for module in modules()
        if not module.is_package and "proto" not in module.path.relative_to(PACKAGE).parts
    ]


def test_each_module_has_its_test_module() -> None:
    missing = [
        name
        for path in mirrored()
        if not expected(path).exists()
        and (name := str(path.relative_to(PACKAGE))) not in COVERED_ELSEWHERE
    ]
    assert not missing, "\n".join(missing)


def test_the_exceptions_are_needed() -> None:
    for name in COVERED_ELSEWHERE:
        assert (PACKAGE / name).exists(), name
        assert not expected(PACKAGE / name).exists(), f"{name} has a test module now"
