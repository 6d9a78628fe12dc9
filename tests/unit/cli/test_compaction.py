"""`pulsar-py compact-topic` against a server that gives the answers of a script."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import jwt
import pytest
from click.testing import CliRunner

from pulsar_py.admin_client import AdminError, AdminSettings
from pulsar_py.cli import compaction
from pulsar_py.cli.commands import main
from pulsar_py.cli.compaction import CompactionFailedError, CompactionRequest, compact_topic
from pulsar_py.testing import BrokerThread

Answers = dict[str, list[tuple[int, object]]]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """What the server answers, by method and the end of the path; the last one stays."""
    monkeypatch.setattr(compaction, "POLL_SECONDS", 0.001)
    return {
        "PUT t/compaction": [(204, None)],
        "GET t/partitions": [(200, {"partitions": 0})],
        "GET t/compaction": [(200, {"status": "SUCCESS"})],
    }


@pytest.fixture
def url(answers: Answers) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_PUT(self) -> None:
            self._answer()

        def _answer(self) -> None:
            left = answers[f"{self.command} {self.path.split('/default/')[1]}"]
            status, body = left.pop(0) if len(left) > 1 else left[0]
            data = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nothing: the test's output is no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


async def run(url: str, timeout_seconds: float = 10.0) -> None:
    request = CompactionRequest(
        AdminSettings(url=url), "persistent://public/default/t", timeout_seconds
    )
    await compact_topic(request)


async def test_it_waits_until_the_topic_is_compacted(url: str, answers: Answers) -> None:
    answers["GET t/compaction"] = [(200, {"status": "RUNNING"}), (200, {"status": "SUCCESS"})]
    await run(url)
    assert len(answers["GET t/compaction"]) == 1


async def test_one_that_is_under_way_is_waited_for(url: str, answers: Answers) -> None:
    answers["PUT t/compaction"] = [(409, {"reason": "Compaction already in progress"})]
    await run(url)


async def test_each_partition_is_waited_for(url: str, answers: Answers) -> None:
    answers["GET t/partitions"] = [(200, {"partitions": 2})]
    answers["GET t-partition-0/compaction"] = [(200, {"status": "SUCCESS"})]
    answers["GET t-partition-1/compaction"] = [(200, {"status": "ERROR", "lastError": "no disk"})]
    with pytest.raises(
        CompactionFailedError, match="t-partition-1: the compaction failed: no disk"
    ):
        await run(url)


@pytest.mark.parametrize(("partitions", "shown"), [(0, "1/?"), (2, "2/2")])
async def test_a_terminal_shows_how_many_are_done(
    url: str,
    answers: Answers,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    partitions: int,
    shown: str,
) -> None:
    answers["GET t/partitions"] = [(200, {"partitions": partitions})]
    for index in range(partitions):
        answers[f"GET t-partition-{index}/compaction"] = [(200, {"status": "SUCCESS"})]
    await run(url)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    await run(url)
    output = capsys.readouterr()
    assert output.out == ""
    assert "compacting" in output.err
    assert shown in output.err


async def test_without_a_timeout_nothing_is_waited_for(url: str, answers: Answers) -> None:
    del answers["GET t/partitions"]
    await run(url, timeout_seconds=0)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"PUT t/compaction": [(404, {"reason": "Topic not found"})]},
            "t is not compacted: .*Topic",
        ),
        ({"GET t/compaction": [(200, {"status": "RUNNING"})]}, "still runs when the time is over"),
        ({"GET t/compaction": [(200, {"status": "NOT_RUN"})]}, "unloaded before it was compacted"),
    ],
)
async def test_what_went_wrong_is_told(
    url: str, answers: Answers, given: Answers, text: str
) -> None:
    answers.update(given)
    with pytest.raises(CompactionFailedError, match=text):
        await run(url, timeout_seconds=0.05)


async def test_what_the_broker_does_not_say_is_an_error(url: str, answers: Answers) -> None:
    answers["GET t/compaction"] = [(500, {"reason": "no"})]
    with pytest.raises(AdminError, match="t/compaction: 500 no"):
        await run(url)


def test_it_comes_with_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PULSAR_PY_CONTEXTS", str(tmp_path / "contexts.json"))
    monkeypatch.delenv("PULSAR_CLIENT_CONF", raising=False)
    key = bytes(range(32))
    config = {
        "authenticationEnabled": True,
        "authenticationProviders": ("token",),
        "tokenSecretKey": "data:;base64," + base64.b64encode(key).decode(),
    }
    token = jwt.encode({"sub": "somebody"}, key, "HS256")
    file = tmp_path / "token"
    file.write_text(token)
    with BrokerThread(config=config) as broker:
        url = broker.web_service_url
        asked = ["compact-topic", "-t", "t", "--admin-url", url]
        refused = CliRunner().invoke(main, asked)
        assert refused.exit_code == 1
        assert "t is not compacted: http status 401" in refused.output.lower()
        admitted = CliRunner().invoke(
            main, [*asked, "--auth-plugin", "token", "--auth-params", f"file://{file}"]
        )
        assert "t is not compacted: namespace not found" in admitted.output.lower()
