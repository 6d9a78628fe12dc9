"""Holds a recorded dialog with a broker, and says where its answers differ.

`websocket_recordings.json` has, for each dialog, the steps and what Apache Pulsar answered; messages
are compared field by field, with patterns for what differs each time.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import struct
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pulsar_py.client.client import Client
from pulsar_py.client.shared.enums import CompressionType
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.network.http_client import HttpRequest, HttpResponse, http_request
from tests.websocket_client import BINARY, CLOSE, PING, PONG, TEXT, WebSocketClient, frame_bytes

Json = Any  # whatever stands in the recording
Step = Mapping[str, Json]

PATIENCE_SECONDS = 20.0
"""For what has to come, on a busy machine."""
NOTHING_SECONDS = 0.25
"""For what must not; it was 0.7 in the recording."""
_ID = re.compile(r"<id L:(?P<entry>\d+)(?: partition (?P<partition>\d+))?"
                 r"(?: batch (?P<batch>\d+)(?: of (?P<size>\d+))?)?>")  # fmt: skip
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_LONG = re.compile(r"<(\d+) characters ([0-9a-f]+)>")
_PROTOCOL_CODES = {1002, 1003, 1007, 1008, 1011}


class DifferenceError(Exception):
    """A step was not answered as recorded."""


class Player:
    """One dialog."""

    def __init__(self, name: str, client: Client, web_port: int) -> None:
        self._client = client
        self._port = web_port
        local = name.replace("_", "-") + "-1"
        self._variables = {
            "x": "41",
            "a": local,
            "topic": f"persistent/public/default/{local}",
            "full": f"persistent://public/default/{local}",
            "cluster": "standalone",
        }
        self._sockets: dict[str, WebSocketClient] = {}

    async def play(self, steps: list[Step]) -> list[str]:
        """Hold the dialog; returns where it differed. An `open` that differs does not end it."""
        differences = []
        try:
            for number, step in enumerate(steps):
                try:
                    await getattr(self, f"_{step['do']}")(step)
                except (DifferenceError, TimeoutError) as error:
                    differences.append(f"{step.get('id', number)}: {step}: {error!r}")
                    if step["do"] != "open":
                        break
            return differences
        finally:
            for each in self._sockets.values():
                await each.drop()

    # --- steps -----------------------------------------------------------------------------

    async def _open(self, step: Step) -> None:
        # What stands in the path of a URL is ASCII.
        path = quote(self._filled(step["path"]), safe="/?=&%:+*@.,~")
        socket = await asyncio.wait_for(
            WebSocketClient.open(
                self._port, path, headers=step.get("headers"), method=step.get("method", "GET")
            ),
            PATIENCE_SECONDS,
        )
        expected = step["answer"]["status"]
        allowed = {expected, *step["answer"].get("also", [])}
        if socket.status not in allowed and not (expected == 500 and socket.status >= 400):
            raise DifferenceError(f"status {socket.status} {socket.body!r}")
        self._sockets[step["id"]] = socket

    async def _send(self, step: Step) -> None:
        socket = self._sockets[step["id"]]
        if "text" in step:
            socket.send(self._filled(step["text"]))
            return
        for each in step["frames"]:
            data = (
                base64.b64decode(each["base64"])
                if "base64" in each
                else self._filled(each["text"]).encode()
            )
            socket.writer.write(
                frame_bytes(
                    data,
                    opcode=each.get("opcode", TEXT),
                    final=each.get("final", True),
                    reserved=each.get("reserved", 0),
                    mask=each.get("mask", True),
                )
            )
            await asyncio.sleep(each.get("pause", 0))

    async def _receive(self, step: Step) -> None:
        socket, answer = self._sockets[step["id"]], step["answer"]
        if "nothing" in answer:
            try:
                frame = await asyncio.wait_for(self._next(socket, step), NOTHING_SECONDS)
            except TimeoutError:
                return
            raise DifferenceError(f"got {frame}")
        frame = await asyncio.wait_for(self._next(socket, step), PATIENCE_SECONDS)
        if "dropped" in answer:
            if frame is not None:
                raise DifferenceError(f"got {frame}")
            return
        if frame is None:
            raise DifferenceError("the socket has ended")
        for kind, opcode in (("binary", BINARY), ("ping", PING), ("pong", PONG)):
            if kind in answer and (frame.opcode, frame.payload) != (
                opcode,
                base64.b64decode(answer[kind]),
            ):
                raise DifferenceError(f"got {frame}")
        if "close" in answer:
            self._check_close(frame, answer)
        if "json" in answer:
            self._check_json(frame, answer["json"], step.get("save"))

    async def _next(self, socket: WebSocketClient, step: Step) -> Any:  # Any: Frame or None
        while True:
            frame = await socket.receive()
            if frame is None or frame.opcode != PING or step.get("pings"):
                return frame
            socket.writer.write(frame_bytes(frame.payload, opcode=PONG))

    async def _gather(self, step: Step) -> None:
        got: list[tuple[str, Json]] = []

        async def take(name: str) -> None:
            while (frame := await self._next(self._sockets[name], step)) is not None:
                message = json.loads(frame.payload)
                got.append((name, message))
                if step.get("ack"):
                    self._sockets[name].send(json.dumps({"messageId": message["messageId"]}))

        tasks = TaskOwner("gather")
        for name in step["ids"]:
            tasks.spawn(take(name), name)
        ends_at = time.monotonic() + PATIENCE_SECONDS
        while len(got) < step["count"] and time.monotonic() < ends_at:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.3)  # there is no more than these
        await tasks.close()
        self._compare_gathered(step, got)

    def _compare_gathered(self, step: Step, got: list[tuple[str, Json]]) -> None:
        left = [each["json"] for each in step["answer"]["messages"]]
        for _, message in got:
            found = [each for each in left if self._difference(message, each) is None]
            if not found:
                raise DifferenceError(f"not expected: {message}; left {left}")
            left.remove(found[0])
        if left:
            raise DifferenceError(f"missing {left}")
        if step.get("same_key"):
            pairs = {(message.get("key"), name) for name, message in got}
            if len(pairs) != len({key for key, _ in pairs}):
                raise DifferenceError(f"keys on several connections: {pairs}")

    async def _close(self, step: Step) -> None:
        socket = self._sockets[step["id"]]
        payload = b""
        if step["code"] is not None:
            payload = struct.pack("!H", step["code"]) + step["reason"].encode()
        socket.writer.write(frame_bytes(payload, opcode=CLOSE))

        async def until_close() -> Any:  # Any: Frame or None
            while (frame := await socket.receive()) is not None and frame.opcode != CLOSE:
                pass
            return frame

        frame = await asyncio.wait_for(until_close(), PATIENCE_SECONDS)
        if frame is None:
            raise DifferenceError("the socket has ended without a close frame")
        self._check_close(frame, step["answer"])

    async def _drop(self, step: Step) -> None:
        await self._sockets[step["id"]].drop()

    async def _call(self, step: Step) -> None:
        ends_at = time.monotonic() + PATIENCE_SECONDS
        path = quote(self._filled(step["path"]), safe="/?=&%:+*@.,~")
        body = self._filled(step.get("body", "")).encode()
        headers = dict(step.get("headers", {}))
        if body:
            headers["Content-Type"] = "application/json"
        while True:
            response = await http_request(
                HttpRequest(
                    url=f"http://127.0.0.1:{self._port}{path}",
                    method=step["method"],
                    headers=headers,
                    body=body,
                ),
                timeout_seconds=PATIENCE_SECONDS,
            )
            difference = self._call_difference(step, response)
            if difference is None:
                return
            if time.monotonic() > ends_at or step.get("setup"):
                raise DifferenceError(difference)
            await asyncio.sleep(0.05)

    def _call_difference(self, step: Step, response: HttpResponse) -> str | None:
        if step.get("setup"):
            return None if response.status < 300 else f"{response.status} {response.body!r}"
        answer = step["answer"]
        if response.status != answer["status"]:
            return f"{response.status} {response.body!r}"
        headers = {name.lower(): value for name, value in dict(response.headers).items()}
        for name, value in answer.get("headers", {}).items():
            if value is not None and headers.get(name.lower()) != self._filled(value):
                return f"header {name}: {headers.get(name.lower())!r}"
        if "values" in answer:
            document = json.loads(response.body)
            for place, value in answer["values"].items():
                wanted = self._filled(value) if isinstance(value, str) else value
                if (found := _at(document, place)) != wanted:
                    return f"{place}: {found!r} in {document}"
        return None

    async def _publish(self, step: Step) -> None:
        messages = step["messages"]
        kind = {each.name.upper(): each for each in CompressionType}
        producer = await self._client.create_producer(
            self._filled(step["topic"]),
            batching_enabled=bool(step.get("batch")),
            batching_max_messages=max(len(messages), 1),
            batching_max_publish_delay_ms=5000,
            compression_type=kind[step.get("compression", "NONE").upper()],
            compress_min_msg_body_size=0,
        )
        async with producer:
            results = [
                producer.send_nowait(
                    self._filled(each["text"]).encode(),
                    **{name: value for name, value in each.items() if name != "text"},
                )
                for each in messages
            ]
            await producer.flush()
            for result in results:
                await result

    async def _sleep(self, step: Step) -> None:
        await asyncio.sleep(step["seconds"])

    async def _id(self, step: Step) -> None:
        made = MessageId(step["ledger"], step["entry"])
        self._variables[step["save"]] = base64.b64encode(made.serialize()).decode()

    async def _now(self, step: Step) -> None:
        self._variables[step["save"]] = str(int(time.time() * 1000) + step["plus_ms"])

    # --- comparing -------------------------------------------------------------------------

    def _filled(self, text: str) -> str:
        text = re.sub(r"\$\{(.)\*(\d+)\}", lambda m: m[1] * int(m[2]), text)
        return re.sub(r"\$\{(\w+)\}", lambda m: self._variables[m[1]], text)

    def _check_close(self, frame: Any, answer: Json) -> None:  # Any: Frame
        if frame.opcode != CLOSE:
            raise DifferenceError(f"got {frame}")
        code, wanted = frame.close_code, answer["close"]
        if code != wanted and not (wanted == 1011 and code in _PROTOCOL_CODES):
            raise DifferenceError(f"closed with {code} {frame.payload[2:]!r}")

    def _check_json(self, frame: Any, expected: Json, save: str | None) -> None:  # Any: Frame
        if frame.opcode != TEXT:
            raise DifferenceError(f"got {frame}")
        got = json.loads(frame.payload)
        difference = self._difference(got, expected)
        if difference is not None:
            raise DifferenceError(f"{difference} in {str(got)[:400]}")
        if save:
            self._variables[save] = got["messageId"]

    def _difference(self, got: Json, expected: Json, place: str = "") -> str | None:
        if isinstance(expected, dict):
            if not isinstance(got, dict):
                return f"{place}: {got!r}"
            for name, value in expected.items():
                if (found := self._difference(got.get(name), value, f"{place}/{name}")) is not None:
                    return found
            return None
        if isinstance(expected, str):
            return None if self._matches(got, expected) else f"{place}: {str(got)[:200]!r}"
        return None if got == expected else f"{place}: {got!r}"

    def _matches(self, got: Json, expected: str) -> bool:
        if expected == "<text>":
            return isinstance(got, str) and bool(got)
        if expected == "<time>":
            return isinstance(got, str) and _TIME.fullmatch(got) is not None
        if (match := _ID.fullmatch(expected)) is not None:
            found = MessageId.parse(base64.b64decode(got))
            wanted = {
                name: int(value) if value else None for name, value in match.groupdict().items()
            }
            return (
                found.entry_id == wanted["entry"]
                and found.partition_index
                in {wanted["partition"], *(() if wanted["partition"] else (-1,))}
                and found.batch_index == (-1 if wanted["batch"] is None else wanted["batch"])
                and found.batch_size == (wanted["size"] or 0)
            )
        if (match := _LONG.fullmatch(expected)) is not None:
            digest = hashlib.sha256(got.encode()).hexdigest()[: len(match[2])]
            return len(got) == int(match[1]) and digest == match[2]
        if match := re.fullmatch(r"L:(\d+):(-?\d+)", expected):
            return re.fullmatch(rf"\d+:{match[1]}:{match[2]}", got) is not None
        return bool(got == self._filled(expected))


def _at(document: Json, place: str) -> Json:
    for part in place.split("/"):
        if isinstance(document, list):
            document = document[int(part)] if int(part) < len(document) else None
        elif isinstance(document, dict):
            document = document.get(part)
        else:
            return None
    return document
