"""A user's authority is trusted on every Python, whatever its `ssl` checks by default."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import Authority
from tests.pythons import ROOT, chosen, interpreters, known_places, oldest_minor, packages, passes

TLS_PACKAGES = ("protobuf", "msgspec")
"""What `strict_handshake` imports, beside Python's own."""

MAKERS = frozenset(
    ("SSLContext", "create_default_context", "_create_unverified_context", "_create_stdlib_context")
)
"""What makes a context."""

MADE_IN = {
    "pulsar_py/common/network/tls.py": "client_ssl_context",
    "pulsar_py/server/security/tls.py": "server_context",
}
"""The only functions that make one; all ports, clients and commands have theirs of them."""

TAKES_CONTEXT = frozenset(
    ("HTTPSConnection", "open_connection", "create_connection", "start_server", "create_server", "start_tls")
)  # fmt: skip


def trees() -> Iterator[tuple[str, ast.Module]]:
    """Each module that says something of TLS or of HTTPS."""
    for path in sorted((ROOT / "pulsar_py").rglob("*.py")):
        text = path.read_text()
        if re.search(r"ssl|HTTPSConnection|urllib\.request|urlopen", text):
            yield path.relative_to(ROOT).as_posix(), ast.parse(text)


def called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def test_each_context_is_made_by_one_of_two_functions_which_clear_the_strict_flag() -> None:
    makers = {}
    for path, tree in trees():
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            calls = {called(node) for node in ast.walk(function) if isinstance(node, ast.Call)}
            if calls & MAKERS:
                makers[path] = function.name
                assert "context.verify_flags &= ~ssl.VERIFY_X509_STRICT" in ast.unparse(function)
    assert makers == MADE_IN


def test_no_connection_takes_a_context_that_python_makes() -> None:
    """`ssl=True`, HTTPS without a context, and `urllib` have the default one, which may be strict."""
    wrong = []
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [each.name for each in node.names] + [getattr(node, "module", None) or ""]
                wrong += [f"{path}: {each}" for each in names if each.startswith("urllib.request")]
            if not isinstance(node, ast.Call) or called(node) not in TAKES_CONTEXT:
                continue
            given = {each.arg: ast.unparse(each.value) for each in node.keywords}
            if given.get("ssl") == "True":
                wrong.append(f"{path}:{node.lineno}: ssl=True")
            if called(node) == "HTTPSConnection" and "context" not in given:
                wrong.append(f"{path}:{node.lineno}: no context")
    assert not wrong


def test_the_oldest_and_the_newest_python_trust_an_authority_that_fails_strict_checks(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    files = (authority.path, *authority.issue("broker"))
    oldest = oldest_minor()
    found = interpreters(oldest, known_places())
    pythons, missing = chosen(found, oldest)
    own = sys.version_info[1]
    if own not in found:
        pythons.insert(0, Path(sys.executable))
    are_strict = {}
    for python in pythons:
        minor = next((each for each, path in found.items() if path == python), own)
        path = str(ROOT)
        if minor != own:
            if problem := packages(minor, tmp_path / str(minor), TLS_PACKAGES):
                missing.append(f"no packages for Python 3.{minor}: {problem[-300:]}")
                continue
            path = os.pathsep.join((path, str(tmp_path / str(minor))))
        else:
            python = Path(sys.executable)  # noqa: PLW2901 - which has them
        ran = subprocess.run(
            [python, "-m", "tests.strict_handshake", *files],
            env=os.environ | {"PYTHONPATH": path},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        answer = json.loads(ran.stdout)
        are_strict[minor] = answer.pop("default_is_strict")
        # A context that checks strictly refuses that authority; Python's own may be one.
        assert answer == {
            "python": [3, minor],
            "strict": False,
            "default": not are_strict[minor],
            "client": True,
            "both": True,
            "without_certificate": False,
        }
    assert are_strict
    if missing:
        pytest.skip(f"passed on 3.{sorted(are_strict)}; {'; '.join(missing)}")


@pytest.mark.slow
def test_tls_on_the_oldest_and_the_newest_python() -> None:
    oldest = oldest_minor()
    pythons, missing = chosen(interpreters(oldest, known_places()), oldest)
    for python in pythons:
        code = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
        version = subprocess.check_output([python, "-c", code], text=True).strip()
        assert passes(python, version, ())
    if missing:
        pytest.skip("; ".join(missing))
