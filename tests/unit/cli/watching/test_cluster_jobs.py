"""How brokers of a cluster are asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from click.testing import CliRunner

from pulsar_py.admin_client import AdminSettings
from pulsar_py.cli.commands import main
from pulsar_py.cli.watching.cluster_jobs import address_of, as_json, as_text, is_well, view_of
from pulsar_py.common.errors import ConfigurationError, ConnectError
from pulsar_py.testing import BrokerThread

REPORT = {"brokerId": "two:8080", "webUrl": "http://two:8080", "webUrlTls": "https://two:8443"}


def test_tls_is_never_left_for_another_broker() -> None:
    plain, secure = AdminSettings(url="http://one:8080"), AdminSettings(url="https://one:8443")
    assert address_of(plain, REPORT) == "http://two:8080"
    assert address_of(secure, REPORT) == "https://two:8443"
    with pytest.raises(ConfigurationError, match="no address with TLS"):
        address_of(secure, {"brokerId": "two:8080", "webUrl": "http://two:8080"})
    with pytest.raises(ConfigurationError, match="tells no address of"):
        address_of(plain, {"brokerId": "two:8080", "webUrlTls": "https://two:8443"})


@contextmanager
def answering(broker_id: str, reports: list[dict[str, Any]]) -> Iterator[str]:
    """A REST API that says what a broker of a cluster would, at the URL that is given."""
    load = {
        "brokerId": broker_id, "isLeading": False, "isLeaving": False,
        "session": {"isGood": True, "doubts": 0}, "heldLookups": 0, "loadedTopics": 0,
        "loadingTopics": 0, "brokers": reports, "bundles": [], "changes": [], "balancing": [],
    }  # fmt: skip
    answers = {"/admin/v2/brokers/load": load, "/admin/v2/brokers/symptoms": []}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answers[self.path]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_each_broker_is_asked_and_who_says_nothing_is_told() -> None:
    with answering("two:8080", []) as two:
        reports = [
            REPORT | {"usage": 0.0, "brokerId": "one:8080"},
            REPORT | {"usage": 0.0, "webUrl": two},
            REPORT | {"usage": 0.0, "webUrl": "http://127.0.0.1:1", "brokerId": "gone:8080"},
        ]
        with answering("one:8080", reports) as one:
            view = view_of(AdminSettings(url=one))
    assert sorted(view.loads) == sorted(view.symptoms) == ["one:8080", "two:8080"]
    assert list(view.failures) == ["gone:8080"]
    assert not is_well(view)
    assert json.loads(as_json(view))["silent"] == view.failures
    assert any(line.startswith("  gone:8080  no answer: ") for line in as_text(view))


def test_the_command_tells_a_broker_alone_and_ends_with_0() -> None:
    with BrokerThread() as broker:
        words = ["doctor", "--cluster", "--admin-url", broker.web_service_url]
        text = CliRunner().invoke(main, words)
        asked = CliRunner().invoke(main, [*words, "-o", "json"])
    assert (text.exit_code, asked.exit_code) == (0, 0), text.output
    assert text.output.startswith("Brokers\n")
    assert len(json.loads(asked.output)["brokers"]) == 1


def test_a_broker_that_is_not_there_is_one_line() -> None:
    with pytest.raises(ConnectError):
        view_of(AdminSettings(url="http://127.0.0.1:1"))
    words = ["doctor", "--cluster", "--admin-url", "http://127.0.0.1:1"]
    result = CliRunner().invoke(main, words)
    assert (result.exit_code, result.output.count("\n")) == (1, 1)
    assert CliRunner().invoke(main, ["doctor", "--cluster", "s"]).exit_code == 2
