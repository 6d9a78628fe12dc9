"""The callers of the recordings: their tokens, passwords, certificates and headers."""

from __future__ import annotations

import base64
import json
import secrets
import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt

from pulsar_py.proto.PulsarApi_pb2 import AuthMethod, CommandConnect
from tests.certificates import Authority

RECORDINGS = json.loads(
    (Path(__file__).parents[2] / "recordings" / "security_recordings.json").read_text()
)
CERTIFICATES = ("admin", "producer", "consumer", "stranger", "tadmin", "proxy")


@dataclass
class Secrets:
    """A folder with all that the settings of a recording name."""

    folder: Path
    keys: dict[str, bytes]
    certificates: dict[str, tuple[str, str]]
    ca_path: str

    @classmethod
    def make(cls, folder: Path) -> Secrets:
        """Make new ones."""
        keys = {"secret": secrets.token_bytes(32), "wrong": secrets.token_bytes(32)}
        for name, key in keys.items():
            (folder / f"{name}.key").write_bytes(key)
        (folder / "htpasswd").write_text("\n".join(RECORDINGS["htpasswd"]))
        for name in ("secret.key", "htpasswd"):
            (folder / name).chmod(0o600)
        ca, foreign = Authority(folder), Authority(folder, "foreign-ca")
        ca.issue("localhost", file_name="server")
        certificates = {name: ca.issue(name, file_name=f"cert-{name}") for name in CERTIFICATES}
        certificates["expired"] = ca.issue("admin", file_name="cert-expired", is_ended=True)
        certificates["foreign"] = foreign.issue("admin", file_name="cert-foreign")
        return cls(folder, keys, certificates, ca.path)

    def settings(self, name: str) -> dict[str, str]:
        """The settings of a recording, with our folder and free ports."""
        return {
            key: value.replace("{secrets}", str(self.folder))
            .replace("{port_tls}", "0")
            .replace("{web_port_tls}", "0")
            for key, value in RECORDINGS["recordings"][name]["settings"].items()
        }

    def token(self, claims: dict[str, Any], key: str = "secret") -> str:
        """A token with these claims; times are seconds from now."""
        now = int(time.time())
        claims = {
            name: now + value if name in {"exp", "nbf", "iat"} else value
            for name, value in claims.items()
        }
        header = {"alg": "none" if key == "none" else "HS256"}
        if isinstance(claims.get("sub"), str) and key != "none":
            return jwt.encode(claims, self.keys[key], "HS256")
        # PyJWT makes none that are wrong: `sub` of another type, no algorithm.
        parts = [_base64(json.dumps(each).encode()) for each in (header, claims)]
        signature = b""
        if key != "none":
            algorithm = jwt.get_algorithm_by_name("HS256")
            signature = algorithm.sign(".".join(parts).encode(), self.keys[key])
        return ".".join([*parts, _base64(signature)])

    def data_of(self, caller: dict[str, Any]) -> str:
        """What a caller proves itself by."""
        if "token" in caller:
            return self.token(caller["token"], caller.get("key", "secret"))
        return str(caller.get("data", ""))

    def context(self, caller: dict[str, Any]) -> ssl.SSLContext:
        """TLS with the caller's certificate, if it has one."""
        context = ssl.create_default_context(cafile=self.ca_path)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # set from Python 3.13 on
        if "cert" in caller:
            context.load_cert_chain(*self.certificates[caller["cert"]])
        return context

    def connect(self, caller: dict[str, Any], *, version: int, refresh: bool) -> CommandConnect:
        """The caller's CONNECT."""
        command = CommandConnect(client_version="test", protocol_version=version)
        command.feature_flags.supports_auth_refresh = refresh
        method = caller.get("method", "token" if "token" in caller else None)
        if method is not None:
            command.auth_method_name = method
        if "token" in caller or "data" in caller:
            command.auth_data = self.data_of(caller).encode()
        if "original" in caller:
            command.original_principal = caller["original"]
        for name, value in caller.get("connect", {}).items():
            if isinstance(value, dict):
                setattr(command, name, self.token(value["token"], value.get("key", "secret")))
            elif name == "auth_method":
                command.auth_method = AuthMethod.Value(value)
            else:
                setattr(command, name, value)
        return command

    def headers(self, caller: dict[str, Any]) -> dict[str, str]:
        """The caller's headers, names in lower case."""
        headers = {name.lower(): value for name, value in caller.get("headers", {}).items()}
        method = caller.get("method", "token" if "token" in caller else None)
        data = self.data_of(caller)
        if "token" in caller and method == "token":
            headers["authorization"] = f"Bearer {data}"
        elif method == "basic":
            headers["authorization"] = f"Basic {base64.b64encode(data.encode()).decode()}"
        elif method == "token":
            headers["authorization"] = f"Bearer {data}"
        elif method not in {None, "tls", "none", ""}:
            headers["authorization"] = f"{method} {data}"
        if "original" in caller:
            headers["x-original-principal"] = caller["original"]
        return headers


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
