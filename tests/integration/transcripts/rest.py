"""The few words of HTTP that a scenario needs."""

from __future__ import annotations

import asyncio
import json
from typing import Any


async def call(host: str, port: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Status and body (JSON, else text) of one request on a connection of its own."""
    payload = b"" if body is None else json.dumps(body).encode()
    head = [
        f"{method} {path} HTTP/1.1",
        f"Host: {host}:{port}",
        "Content-Type: application/json",
        f"Content-Length: {len(payload)}",
        "Connection: close",
    ]
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + payload)
        data = await asyncio.wait_for(reader.read(), 30)
    finally:
        writer.close()
    header, _, rest = data.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in header.lower():
        rest = _unchunk(rest)
    status = int(header.split(b" ", 2)[1])
    try:
        return status, json.loads(rest) if rest else None
    except ValueError:
        return status, rest.decode(errors="replace")


def _unchunk(data: bytes) -> bytes:
    parts = []
    while data:
        size_text, _, data = data.partition(b"\r\n")
        size = int(size_text.split(b";")[0], 16)
        if size == 0:
            break
        parts.append(data[:size])
        data = data[size + 2 :]
    return b"".join(parts)
