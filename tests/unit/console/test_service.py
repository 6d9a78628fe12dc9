"""The console beside the REST API: where it answers, to whom, and when it is loaded."""

from __future__ import annotations

import subprocess
import sys

from pulsar_py.console.assets import Assets
from pulsar_py.console.service import console_routes
from tests.unit.console.conftest import ConsoleCalls, console_of
from tests.unit.test_web import GUARDED


def test_nothing_of_the_console_is_imported_before_its_first_request() -> None:
    code = """
import asyncio, sys
from pulsar_py.standalone import Broker
from tests.websocket_client import WebSocketClient

def loaded():
    return any(name.startswith("pulsar_py.console") for name in sys.modules)

async def serve():
    async with Broker() as broker:
        port = int(broker.web_service_url.rpartition(":")[2])
        await WebSocketClient.open(port, "/admin/v2/clusters")
        print(loaded())
        await WebSocketClient.open(port, "/console/")
        print(loaded())

asyncio.run(serve())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


async def test_a_browser_that_goes_to_the_port_is_sent_to_the_console(
    console: ConsoleCalls,
) -> None:
    sent = await console.call("GET", "/", sec_fetch_mode="navigate")
    assert (sent.status, dict(sent.headers)["Location"]) == (302, "/console/")
    assert await console.status("GET", "/") == 404  # as Apache Pulsar answers


async def test_names_that_only_begin_alike_are_not_the_console(console: ConsoleCalls) -> None:
    assert await console.status("GET", "/consoles") == 404
    assert await console.status("GET", "/admin/consoles") == 404
    assert await console.status("GET", "/admin/v2/clusters") == 200


PARAMETERS = (
    "limit",
    "after",
    "search",
    "first",
    "last",
    "cells",
    "action",
    "action=skip&count",
    "action=expire&seconds",
    "action=reset&timestamp",
    "action=reset&messageId",
    "since",
    "topic",
    "namespace",
    "tenant",
)
VALUES = ("", "-1", "9" * 5000, "%00", "%ED%A0%80", "1:1")


async def test_no_parameter_makes_a_call_fail(console: ConsoleCalls) -> None:
    await console.client.subscribe("a", "s")
    failed = []
    for route in console_routes(console.service, Assets({}), lambda *_: console.client):
        if route.method != "GET":
            continue
        path = (
            route.template.replace("{domain:persistent|non-persistent}", "persistent")
            .replace("{tenant}", "public")
            .replace("{namespace}", "default")
            .replace("{topic}", "a")
            .replace("{subscription}", "s")
        )
        for name in PARAMETERS:
            for value in VALUES:
                status = await console.status("GET", f"{path}?{name}={value}")
                if status >= 500 and path != "/console":  # there are no files here
                    failed.append((path, name, value[:50], status))
    assert not failed


async def test_pages_of_other_sites_are_refused(console: ConsoleCalls) -> None:
    for headers in (
        {"origin": "http://evil.example", "host": "localhost:8080"},
        {"sec_fetch_site": "cross-site", "host": "localhost:8080"},
    ):
        answer = await console.call("GET", "/admin/console/me", **headers)
        assert answer.status == 403
        assert (await console.call("GET", "/console/", **headers)).status == 403


async def test_calls_need_authentication_before_anything_else_and_pages_do_not() -> None:
    async with console_of(**GUARDED) as console:
        assert await console.status("GET", "/console/") == 200
        for path in ("/admin/console/me", "/admin/console/nothing", "/admin/console"):
            assert await console.status("GET", path) == 401
        assert await console.status("GET", "/admin/console/live", role="friend") == 401
        assert await console.status("GET", "/admin/console/live", role="admin") == 200
