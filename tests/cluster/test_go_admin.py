"""Apache Pulsar's Go client for administration makes each of its calls at our broker.

`pulsarctl` is a command line around it. The calls stand in `go_admin_calls.txt`, whose head says how;
each method is called once at least, but for those of what a broker without functions does not have.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from pulsar_py.blocking import Client
from pulsar_py.testing import BrokerThread
from tests.cluster.java_programs import TARGET
from tests.cluster.line_program import LineProgram

pytestmark = [pytest.mark.slow, pytest.mark.interop]

SOURCE: Final = Path(__file__).with_name("go_admin")
CALLS: Final = Path(__file__).with_name("go_admin_calls.txt")
TOPIC: Final = "persistent://t/n/a"
BUNDLE: Final = "0x00000000_0xffffffff"
POLICY_GROUPS: Final = ("topics", "policies", "global-policies")
MARK: Final = re.compile(r" (=>|==|!) ")
SETTINGS: Final = {"forceDeleteNamespaceAllowed": True, "brokerDeleteInactiveTopicsEnabled": False}


class GoAdmin(LineProgram):
    """The program, compiled once; it makes one call after the other."""

    def __init__(self, web_service_url: str) -> None:
        """Skips the test where Go, or a module, can't be had."""
        if shutil.which("go") is None:
            pytest.skip("go is missing")
        TARGET.mkdir(exist_ok=True)
        program = TARGET / "goadmin"
        with tempfile.TemporaryDirectory() as place:
            tree = shutil.copytree(SOURCE, Path(place) / "tree")
            built = subprocess.run(
                ["go", "build", "-o", program, "."],
                cwd=tree,
                capture_output=True,
                text=True,
                check=False,
            )
        if built.returncode != 0:
            pytest.skip(f"go built nothing: {built.stderr[-1000:]}")
        super().__init__([program, web_service_url])

    def ask(self, line: str) -> Any:  # Any: JSON
        """The answer to one line."""
        return json.loads(self.answer(line))

    def methods(self) -> dict[str, str]:
        """The signature of each method, by group and name."""
        found = {}
        for each in self.ask("METHODS"):
            group, name, signature = each.split(" ", 2)
            if not name.endswith("WithContext"):  # the same call, that can be ended
                found[f"{group} {name}"] = signature
        return found


def has(found: Any, expected: Any) -> bool:
    """Whether all that is expected is in there; of lists, each one beside others."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(
            name in found and has(found[name], value) for name, value in expected.items()
        )
    if isinstance(expected, list):
        return isinstance(found, list) and (
            all(any(has(each, value) for each in found) for value in expected)
        )
    return bool(found == expected)


@dataclass
class World:
    """Makes the calls, and notes what is wrong."""

    broker: BrokerThread
    program: GoAdmin
    signatures: dict[str, str]
    called: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    ledger: int = -1

    def make(self, line: str) -> None:
        """Make the calls of one line."""
        first = line.partition(" ")[0]
        if first == "publish":
            self._publish(*line.split()[1:])
        elif first == "policy":
            self._policy(*line.split(" ", 2)[1:])
        else:
            self._call(line)

    def _publish(self, topic: str, count: str) -> None:
        with Client(self.broker.service_url) as client, client.create_producer(topic) as producer:
            for number in range(int(count)):
                self.ledger = producer.send(b"m%d" % number).ledger_id

    def _policy(self, name: str, value: str) -> None:
        for group in POLICY_GROUPS:
            setter = f"Set{name}"
            self._call(f'{group} {setter} ["{TOPIC}", {value}]')
            applied = ", false" if self._has_flag(f"{group} Get{name}") else ""
            self._call(f'{group} Get{name} ["{TOPIC}"{applied}] => {value}')
            self._call(f'{group} Remove{name} ["{TOPIC}"]')
            after = self.program.ask(f'{group} Get{name} ["{TOPIC}"{applied}]')
            if "results" in after and has(after["results"][0], json.loads(value)):
                self.wrong.append(f"{group} Remove{name} left {after}")

    def _has_flag(self, method: str) -> bool:
        return ", bool) (" in self.signatures[method]

    def _call(self, line: str) -> None:
        call, mark, expected = [*MARK.split(line, maxsplit=1), "", ""][:3]
        self.called.add(" ".join(call.split(" ", 2)[:2]))
        answer = self.program.ask(self._filled(call))
        if mark == "!":
            is_right = expected in answer.get("error", "")
        elif mark and "results" in answer:
            wanted, found = json.loads(self._filled(expected)), answer["results"][0]
            is_right = found == wanted if mark == "==" else has(found, wanted)
        else:
            is_right = "results" in answer
        if not is_right:
            self.wrong.append(f"{line}: {json.dumps(answer)[:500]}")

    def _filled(self, text: str) -> str:
        names = {
            "WEB_SERVICE_URL": self.broker.web_service_url,
            "SERVICE_URL": self.broker.service_url,
            "BROKER": urlsplit(self.broker.web_service_url).netloc,
            "BUNDLE": BUNDLE,
            "LEDGER": str(self.ledger),
        }
        for name, value in names.items():
            text = text.replace(name, value)
        return text


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with (
        BrokerThread(config=SETTINGS) as broker,
        GoAdmin(broker.web_service_url) as program,
    ):
        made = World(broker, program, program.methods())
        lines = CALLS.read_text().splitlines()
        for line in itertools.filterfalse(lambda each: each.startswith("#") or not each, lines):
            made.make(line)
        yield made


def test_each_call_is_answered_as_the_client_expects(world: World) -> None:
    assert not world.wrong, "\n".join(world.wrong)


def test_no_method_is_left_out(world: World) -> None:
    assert world.called == world.signatures.keys()
