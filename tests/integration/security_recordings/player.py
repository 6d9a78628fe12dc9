"""Plays the cases of the recordings against one of our brokers, and compares.

Binary cases go over sockets, with TLS where the case says so; calls of REST go to the application
behind the port, but those with TLS go over sockets, too.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import struct
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from google.protobuf.json_format import ParseDict

from pulsar_py.admin.api.all_routes import all_routes
from pulsar_py.admin.app import AdminApp
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, MessageIdData, ServerError
from pulsar_py.server.handlers.command_table import COMMANDS
from pulsar_py.server.handlers.handle_transaction import handle_not_enabled
from pulsar_py.standalone import Broker
from pulsar_py.web import access_of
from tests.integration.security_recordings.callers import RECORDINGS, Secrets
from tests.wire_client import encode, send_frame

TOLERANCE_SECONDS = 2.5
_MINUS_ONE = (1 << 64) - 1
Json = dict[str, Any]


def field_name(kind: int) -> str:
    """The field of BaseCommand that holds commands of a kind."""
    return BaseCommand.DESCRIPTOR.fields_by_number[kind].name


def is_served(case: Json) -> bool:
    """Whether we serve all commands of a case."""
    kinds = [step["send"] for step in case["steps"] if "send" in step]
    return all(
        COMMANDS[BaseCommand.Type.Value(kind)].handler is not handle_not_enabled for kind in kinds
    )


@dataclass
class Connection:
    """One connection of a case."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    request_id: int = 0
    is_closed: bool = False

    async def frame(self, within: float) -> BaseCommand | None:
        """The next frame; None if none comes, or the broker closes."""
        try:
            async with asyncio.timeout(within):
                (size,) = struct.unpack(">I", await self.reader.readexactly(4))
                data = await self.reader.readexactly(size)
        except TimeoutError:
            return None
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            self.is_closed = True
            return None
        (size,) = struct.unpack_from(">I", data)
        return BaseCommand.FromString(data[4 : 4 + size])

    def send(self, kind: str, message: Any) -> int | None:
        """Send a command with a fresh request id, if its kind has one; returns that."""
        command = BaseCommand(type=BaseCommand.Type.Value(kind))
        request_id = None
        if "request_id" in message.DESCRIPTOR.fields_by_name:
            self.request_id += 1
            request_id = message.request_id = self.request_id
        getattr(command, field_name(command.type)).CopyFrom(message)
        self.writer.write(encode(command))
        return request_id

    async def wait_for_end(self) -> None:
        """Return when the broker has closed, or did not within some seconds."""
        while not self.is_closed:
            if await self.frame(3) is None:
                return


@dataclass
class Player:
    """One broker and what was prepared in it."""

    broker: Broker
    secrets: Secrets
    failures: dict[str, str] = field(default_factory=dict)
    let_in: list[str] = field(default_factory=list)  # of them, who was refused by Apache Pulsar
    played_count: int = 0

    def __post_init__(self) -> None:
        service = self.broker.service
        self.app = AdminApp(all_routes(service), access_of(service))
        self.routes = self.app._router

    # --- REST ------------------------------------------------------------------------------------

    async def call(self, caller: str, method: str, path: str, body: Any) -> int:
        """The status of a call."""
        headers = {**self.secrets.headers(RECORDINGS["callers"][caller]), "accept": "*/*"}
        if body is not None:
            headers["content-type"] = "application/json"
        data = b"" if body is None else json.dumps(body).encode()
        response = await self.app.handle(method, path, headers, data)
        return response.status

    async def call_over_tls(self, caller: str, method: str, path: str) -> int | None:
        """The same over a socket; None if there is no answer."""
        given = RECORDINGS["callers"][caller]
        address = urlsplit(self.broker.web_service_url_tls or "")
        try:
            reader, writer = await asyncio.open_connection(
                address.hostname,
                address.port,
                ssl=self.secrets.context(given),
                server_hostname="localhost",
            )
            lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close"]
            lines += [f"{name}: {each}" for name, each in self.secrets.headers(given).items()]
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
            answer = await reader.read()
            writer.close()
        except (ConnectionError, ssl.SSLError):
            return None
        return int(answer.split(b" ")[1]) if answer else None

    async def prepare(self) -> None:
        """What stands in the recordings, and messages on some topics."""
        for method, path, body in RECORDINGS["prepare"]:
            status = await self.call("admin", method, path, body)
            assert status in {200, 204, 409}, (method, path, status)
        for namespace in ("t/n", "t/pol", "t/pre", "o/n"):
            for number in range(20):
                status = await self.call(
                    "admin", "GET", f"/lookup/v2/topic/persistent/{namespace}/l{number}", None
                )
                assert status == 200
        for topic in ("t/n/a", "t/n/one", "o/n/a", "t/pol/a", "t/n/sch", "t/n/gc", "o/n/gc"):
            cnx, _ = await self.open("admin", {})
            assert cnx is not None
            fields: Json = {"topic": f"persistent://{topic}", "producer_id": 1}
            if topic == "t/n/sch":
                fields["schema"] = {"name": "s", "schema_data": "hex:", "type": "String"}
            answer = await self.ask(cnx, "PRODUCER", fields, 10)
            assert answer["type"] == "PRODUCER_SUCCESS", answer
            for number in range(3):
                cnx.writer.write(send_frame(1, number, b"m"))
                assert await cnx.frame(5) is not None
            cnx.writer.close()

    def is_row_served(self, row: Json) -> bool:
        """Whether we have the route of a row, or Apache Pulsar has none either."""
        path = row["path"].partition("?")[0].replace("{c}", "c")
        found = self.routes.find(row["method"], path)
        if not hasattr(found, "route"):
            return not any(
                "reason" in answer or answer.get("status") in {200, 204, 409}
                for answer in row["callers"].values()
            )
        # `DELETE …/retention` is that of a bundle of this name while there is no such policy.
        return not found.route.template.endswith("{bundle}") or "/0x" in path

    async def play_row(self, row: Json) -> None:
        """Call a route as each caller."""
        for caller, expected in row["callers"].items():
            name = "".join(each if each.isalnum() else "-" for each in caller)
            path = row["path"].replace("{c}", name)
            for method, before, body in row.get("before", ()):
                await self.call("admin", method, before.replace("{c}", name), body)
            status: int | None
            if row.get("tls"):
                status = await self.call_over_tls(caller, row["method"], path)
            else:
                status = await self.call(caller, row["method"], path, row.get("body"))
            self.played_count += 1
            if expected.get("status") in {401, 403} and status is not None and status < 400:
                self.let_in.append(f"{row['name']}/{caller}")
            if not _is_status_met(expected, status, is_stricter=caller in row.get("stricter", ())):
                self.failures[f"{row['name']}/{caller}"] = f"{expected} but {status}"

    # --- binary ----------------------------------------------------------------------------------

    async def open(self, caller: str, step: Json) -> tuple[Connection | None, Json]:
        """Connect; the connection and the answer."""
        given = RECORDINGS["callers"][caller]
        is_tls = bool(step.get("tls"))
        url = self.broker.service_url_tls if is_tls else self.broker.service_url
        address = urlsplit(url or "")
        try:
            reader, writer = await asyncio.open_connection(
                address.hostname,
                address.port,
                ssl=self.secrets.context(given) if is_tls else None,
                server_hostname="localhost" if is_tls else None,
            )
        except (ConnectionError, ssl.SSLError):
            return None, {"refused": True}
        cnx = Connection(reader, writer)
        if step.get("bare"):
            return cnx, {}
        message = self.secrets.connect(
            given, version=step.get("protocol_version", 21), refresh=step.get("refresh", True)
        )
        cnx.send("CONNECT", message)
        frame = await cnx.frame(10)
        if frame is None:
            return cnx, {"refused": True} if is_tls and cnx.is_closed else _nothing(cnx)
        return cnx, described(frame)

    async def ask(self, cnx: Connection, kind: str, fields: Json, within: float) -> Json:
        """Send a command; the frame that answers it."""
        command = BaseCommand(type=BaseCommand.Type.Value(kind))
        message = getattr(command, field_name(command.type))
        ParseDict(_parsable(fields), message, ignore_unknown_fields=False)
        for name in ("message_id", "start_message_id"):
            if name in fields:
                part = getattr(message, name)
                part.CopyFrom(
                    MessageIdData(**{key: each % (1 << 64) for key, each in fields[name].items()})
                )
        return await self.answer_to(cnx, kind, message, within)

    async def answer_to(self, cnx: Connection, kind: str, message: Any, within: float) -> Json:
        """The frame with the command's request id, or any ERROR."""
        request_id = cnx.send(kind, message)
        while True:
            frame = await cnx.frame(within)
            if frame is None:
                return _nothing(cnx)
            answer = getattr(frame, field_name(frame.type))
            if (
                frame.type == BaseCommand.ERROR
                or request_id is None
                or getattr(answer, "request_id", None) == request_id
            ):
                return described(frame)

    async def play_case(self, case: Json) -> None:
        """Play a binary case."""
        cnxs: dict[str, Connection] = {}
        answers = iter(case["answers"])
        try:
            for step in case["steps"]:
                expected = next(answers, None)
                if expected is None:
                    return
                got = await self._step(cnxs, step, expected)
                problem = difference(expected, got)
                self.played_count += 1
                if problem:
                    if _is_refused_right(expected) and not _is_refusal(got):
                        self.let_in.append(case["name"])
                    if not (case.get("stricter") and _is_refusal(got)):
                        self.failures[case["name"]] = f"{step}: {problem}"
                    return
            if next(answers, None) is not None and not await _is_alive(cnxs["c"]):
                self.failures[case["name"]] = "not alive in the end"
        finally:
            for cnx in cnxs.values():
                cnx.writer.close()

    async def _step(self, cnxs: dict[str, Connection], step: Json, expected: Json) -> Json:
        on = step.get("on", "c")
        if "connect" in step:
            cnx, answer = await self.open(step["connect"], step)
            if cnx is not None:
                cnxs[on] = cnx
        elif "rest" in step:
            return {"status": await self.call("admin", *step["rest"])}
        elif "sleep" in step:
            await asyncio.sleep(step["sleep"])
            return {}
        elif "wait" in step:
            return await _collected(cnxs[on], step["wait"], step.get("frames"))
        elif "answer_with" in step:
            self._answer_challenge(cnxs[on], step)
            return {}
        elif step["send"] == "CONNECT":
            given = RECORDINGS["callers"][step["as"]]
            message = self.secrets.connect(given, version=21, refresh=True)
            answer = await self.answer_to(cnxs[on], "CONNECT", message, step["within"])
        else:
            within = step.get("within", 10)
            answer = await self.ask(cnxs[on], step["send"], step.get("fields", {}), within)
        is_end_expected = expected.get("closed") and expected.get("type") == answer.get("type")
        if is_end_expected and on in cnxs and not cnxs[on].is_closed:
            await cnxs[on].wait_for_end()
        if on in cnxs and cnxs[on].is_closed and "refused" not in answer:
            answer["closed"] = True
        return answer

    def _answer_challenge(self, cnx: Connection, step: Json) -> None:
        given = RECORDINGS["callers"][step["answer_with"]]
        command = BaseCommand(type=BaseCommand.AUTH_RESPONSE)
        response = command.authResponse
        response.client_version = "test"
        response.protocol_version = 21
        response.response.auth_method_name = step.get("method", given.get("method", "token"))
        response.response.auth_data = self.secrets.data_of(given).encode()
        cnx.writer.write(encode(command))


def _nothing(cnx: Connection) -> Json:
    return {"closed": True} if cnx.is_closed else {"nothing": True}


async def _collected(cnx: Connection, seconds: float, count: int | None) -> Json:
    """What comes by itself."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    frames: list[Json] = []
    while count is None or len(frames) < count:
        frame = await cnx.frame(start + seconds - loop.time())
        if frame is None:
            break
        if frame.type != BaseCommand.PING:
            frames.append({**described(frame), "after": loop.time() - start})
    if cnx.is_closed:
        return {"frames": frames, "closed": True, "closed_after": loop.time() - start}
    return {"frames": frames}


async def _is_alive(cnx: Connection) -> bool:
    command = BaseCommand(type=BaseCommand.PING)
    command.ping.SetInParent()
    cnx.writer.write(encode(command))
    while (frame := await cnx.frame(5)) is not None:
        if frame.type == BaseCommand.PONG:
            return True
    return False


def _parsable(value: Any) -> Any:
    """Fields as protobuf's JSON has them; ids of messages are set by hand."""
    if isinstance(value, dict):
        return {
            name: _parsable(each)
            for name, each in value.items()
            if name not in {"message_id", "start_message_id"}
        }
    if isinstance(value, list):
        return [_parsable(each) for each in value]
    if isinstance(value, str) and value.startswith("hex:"):
        return ""
    return value


def described(frame: BaseCommand) -> Json:
    """A frame as the recordings have it."""
    found: Json = {"type": BaseCommand.Type.Name(frame.type)}
    message = getattr(frame, field_name(frame.type))
    names = message.DESCRIPTOR.fields_by_name
    for name in ("error", "error_code"):
        if name in names and message.HasField(name):
            found[name] = ServerError.Name(getattr(message, name))
    if "response" in names:
        kinds = names["response"].enum_type.values_by_number
        found["response"] = kinds[message.response].name
    if "partitions" in names and message.HasField("partitions"):
        found["partitions"] = message.partitions
    if "challenge" in names:
        challenge = message.challenge
        found["challenge"] = {
            "auth_method_name": challenge.auth_method_name,
            "auth_data": f"text:{challenge.auth_data.decode()}",
        }
    return found


def difference(expected: Json, got: Json) -> str:
    """What differs, empty if nothing that counts does."""
    for name in ("type", "error", "error_code", "response", "partitions", "challenge", "status"):
        if expected.get(name) != got.get(name):
            return f"{name}: expected {expected}, got {got}"
    for name in ("closed", "refused", "nothing"):
        if bool(expected.get(name)) != bool(got.get(name)):
            return f"{name}: expected {expected}, got {got}"
    if len(expected.get("frames", ())) != len(got.get("frames", ())):
        return f"expected {expected}, got {got}"
    for wanted, found in zip(expected.get("frames", ()), got.get("frames", ()), strict=True):
        problem = difference(wanted, found)
        if problem or abs(wanted["after"] - found["after"]) > TOLERANCE_SECONDS:
            return problem or f"expected {wanted}, got {found}"
    if abs(expected.get("closed_after", 0) - got.get("closed_after", 0)) > TOLERANCE_SECONDS:
        return f"expected {expected}, got {got}"
    return ""


def _is_refused_right(expected: Json) -> bool:
    codes = {expected.get("error"), expected.get("error_code")}
    return bool(codes & {"AuthenticationError", "AuthorizationError"})


def _is_refusal(got: Json) -> bool:
    if any(frame["type"].startswith("CLOSE_") for frame in got.get("frames", ())):
        return True
    return any(name in got for name in ("error", "error_code", "closed", "refused"))


def _is_status_met(expected: Json, status: int | None, *, is_stricter: bool) -> bool:
    if expected.get("refused"):
        return status is None
    wanted = expected["status"]
    if wanted == 500:
        return status is not None and status >= 400
    return status == wanted or (is_stricter and status in {401, 403})
