"""The pages: what they may load, and that nothing of them is a script or a style within HTML."""

from __future__ import annotations

import re

from pulsar_py.console.assets import POLICY, Assets
from tests.package_source import PACKAGE
from tests.unit.console.conftest import ConsoleCalls

FOLDER = PACKAGE / "console" / "assets"


async def test_the_page_and_each_of_its_files_are_served(console: ConsoleCalls) -> None:
    for path in ("/console", "/console/"):
        page = await console.call("GET", path, accept="text/html")
        assert page.status == 200
        assert b'src="/console/app.js"' in page.body
    for each in FOLDER.iterdir():
        if each.suffix == ".html":
            continue
        answer = await console.call("GET", f"/console/{each.name}")
        assert answer.status == 200
        assert answer.body == each.read_bytes()
    assert await console.status("GET", "/console/nothing.js") == 404
    assert await console.status("GET", "/console/..%2Fservice.py") == 404
    assert await console.status("POST", "/console/app.js") == 405


async def test_a_page_runs_its_own_files_alone(console: ConsoleCalls) -> None:
    headers = dict((await console.call("GET", "/console/")).headers)
    assert headers["Content-Security-Policy"] == POLICY
    directives = dict(each.split(" ", 1) for each in POLICY.split("; "))
    assert directives["default-src"] == "'none'"
    assert {directives[f"{each}-src"] for each in ("script", "style", "connect")} == {"'self'"}
    assert directives["frame-ancestors"] == "'none'"
    assert directives["trusted-types"] == "'none'"
    assert "unsafe" not in POLICY


def test_no_file_has_an_inline_script_or_loads_anything_from_elsewhere() -> None:
    for each in FOLDER.iterdir():
        text = each.read_text("utf-8")
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), each.name
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text
        ), each.name
    page = (FOLDER / "index.html").read_text("utf-8")
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", page)


async def test_a_browser_that_has_a_file_gets_it_again_only_when_it_changed(
    console: ConsoleCalls,
) -> None:
    first = await console.call("GET", "/console/app.js")
    tag = dict(first.headers)["ETag"]
    second = await console.call("GET", "/console/app.js", if_none_match=tag)
    assert (second.status, second.body) == (304, b"")
    assert (await console.call("GET", "/console/app.js", if_none_match='"x"')).status == 200


def test_files_of_other_kinds_are_not_read() -> None:
    assert not [
        route.template
        for route in Assets({"a.py": b"", "b.js": b""}).routes()
        if ".py" in route.template
    ]
