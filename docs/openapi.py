"""The OpenAPI document of the administration, made of what its routes declare.

`python -m docs.generate` (`make docs`) writes `docs/openapi.json`; a test fails when it is stale. A
broker answers the same at `/admin/openapi.json`.
"""  # noqa: INP001 - tools of the checkout, no package

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from pulsar_py.admin.api.all_routes import all_routes
from pulsar_py.admin.api.openapi import document
from pulsar_py.standalone import Broker

PATH = Path("docs/openapi.json")


def render() -> str:
    """The text of `docs/openapi.json`."""
    return asyncio.run(_render())


async def _render() -> str:
    async with Broker() as broker:
        return _text(document(all_routes(broker.service)), depth=3) + "\n"


def _text(value: Any, depth: int) -> str:  # Any: JSON
    """JSON whose objects have a line for each field down to a depth, an operation or a type."""
    if not depth or not isinstance(value, dict):
        return json.dumps(value)
    lines = [f"{json.dumps(name)}: {_text(each, depth - 1)}" for name, each in value.items()]
    return "{\n" + ",\n".join(lines) + "\n}"


def main() -> None:
    """Write `docs/openapi.json`."""
    PATH.write_text(render(), "utf-8")


if __name__ == "__main__":
    main()
