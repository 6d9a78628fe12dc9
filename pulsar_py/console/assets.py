"""`Assets`: the files of the console's pages, and the headers that keep a page to itself.

The files are read once, at the console's first request. Everything comes from the broker: the
policy allows no script but these files, no inline script or style, no frame around a page, and no
connection elsewhere. Texts can't become HTML: Chromium refuses that by `trusted-types`, too.

Browsers ask again each time whether a file has changed, by its `ETag`.

Source: Content Security Policy Level 3 and Trusted Types of the W3C.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from importlib.resources import files
from typing import Final, Self

from pulsar_py.admin.http_messages import HttpError, Request, Response
from pulsar_py.admin.router import Route

__all__ = ["PAGE", "POLICY", "Assets"]

OPEN: Final = "open to every caller: the pages have no data, and ask who signs in"
PAGE: Final = "/console/"

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Final = (
    ("Content-Security-Policy", POLICY),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
    ("Cache-Control", "no-cache"),
)

_TYPES: Final[Mapping[str, str]] = {
    "html": "text/html;charset=utf-8",
    "css": "text/css;charset=utf-8",
    "js": "text/javascript;charset=utf-8",
    "svg": "image/svg+xml",
}


class Assets:
    """The files by name; immutable once read."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self._contents = dict(contents)
        self._tags = {
            name: f'"{hashlib.sha256(data).hexdigest()[:32]}"' for name, data in contents.items()
        }

    @classmethod
    def read(cls) -> Self:
        """Read the assets of this package; it reads files, so call it in a thread."""
        folder = files("pulsar_py.console") / "assets"
        return cls(
            {
                each.name: each.read_bytes()
                for each in folder.iterdir()
                if each.name.rpartition(".")[2] in _TYPES
            }
        )

    def routes(self) -> Iterable[Route]:
        """The routes of the pages; all states of the console are one page."""
        yield Route("GET", "/console", self.page, OPEN, produces="text/html")
        for kind in ("css", "js", "svg"):
            produced = _TYPES[kind].partition(";")[0]
            for name in sorted(self._contents):
                if name.endswith("." + kind):
                    yield Route("GET", f"/console/{name}", self.file, OPEN, produces=produced)

    async def page(self, request: Request) -> Response:
        """Return the page, which loads the rest."""
        return self._answer("index.html", request)

    async def file(self, request: Request) -> Response:
        """Return one of the files."""
        return self._answer(request.raw_path.rpartition("/")[2], request)

    def _answer(self, name: str, request: Request) -> Response:
        data = self._contents.get(name)
        if data is None:
            raise HttpError(HTTPStatus.NOT_FOUND, f"the console has no file {name!r}")
        tag = self._tags[name]
        headers = (*HEADERS, ("ETag", tag))
        if request.headers.get("if-none-match") == tag:
            return Response(HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(HTTPStatus.OK, data, _TYPES[name.rpartition(".")[2]], headers)
