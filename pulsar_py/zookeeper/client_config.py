"""ZooKeeper's own configuration of clients, which `metadataStoreConfigPath` names. Pure.

Apache Pulsar hands the file to ZooKeeper's client, whose properties and defaults these are:

    zookeeper.client.secure             true: TLS, to the servers' secureClientPort
    zookeeper.ssl.trustStore.location   PEM: the certificates of the authorities to trust
    zookeeper.ssl.keyStore.location     PEM: the client's own certificate, and its private key
    zookeeper.ssl.hostnameVerification  true
    zookeeper.sasl.client               true: SASL, where there is a section of JAAS for it
    zookeeper.sasl.clientconfig         Client: the name of that section
    java.security.auth.login.config     the file with it; an option of the JVM in Apache Pulsar
    jute.maxbuffer                      1048575: bytes of the largest request

A property that is not understood is refused: whoever wrote it relies on it.

Source: ZKClientConfig, ClientX509Util and Login in ZooKeeper; PIP-366.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.network.tls import TlsOptions
from pulsar_py.zookeeper.digest_md5 import DigestMd5Credentials
from pulsar_py.zookeeper.settings import SERVER_MAX_REQUEST_BYTES

_SECURE: Final = "zookeeper.client.secure"
_SOCKET: Final = "zookeeper.clientCnxnSocket"
_TRUST: Final = "zookeeper.ssl.trustStore.location"
_TRUST_TYPE: Final = "zookeeper.ssl.trustStore.type"
_KEY: Final = "zookeeper.ssl.keyStore.location"
_KEY_TYPE: Final = "zookeeper.ssl.keyStore.type"
_HOSTNAME: Final = "zookeeper.ssl.hostnameVerification"
_SASL: Final = "zookeeper.sasl.client"
_SECTION: Final = "zookeeper.sasl.clientconfig"
_JAAS: Final = "java.security.auth.login.config"
_MAX_BYTES: Final = "jute.maxbuffer"

_UNDERSTOOD: Final = (
    _SECURE, _SOCKET, _TRUST, _TRUST_TYPE, _KEY, _KEY_TYPE, _HOSTNAME, _SASL, _SECTION, _JAAS,
    _MAX_BYTES,
)  # fmt: skip
_DIGEST: Final = "DigestLoginModule"
_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|"(?P<text>(?:[^"\\]|\\.)*)"|(?P<word>[^\s{};="]+)|(?P<mark>[{};=])""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ZooKeeperClientConfig:
    """TLS settings and credentials for the servers."""

    tls: TlsOptions | None = None
    sasl: DigestMd5Credentials | None = None
    max_request_bytes: int = SERVER_MAX_REQUEST_BYTES


def client_config(
    properties: Mapping[str, str], read_text: Callable[[str], str]
) -> ZooKeeperClientConfig:
    """What the properties of such a file say; `read_text` reads the file of JAAS.

    Raises:
        ConfigurationError: A property is not understood, or has a value that is not served.
    """
    for name in properties:
        if name not in _UNDERSTOOD:
            raise ConfigurationError(f"{name} is not understood, only {', '.join(_UNDERSTOOD)}")
    return ZooKeeperClientConfig(
        _tls(properties), _credentials(properties, read_text), _max_bytes(properties)
    )


def _tls(properties: Mapping[str, str]) -> TlsOptions | None:
    if not _flag(properties, _SECURE, default=False):
        return None
    return TlsOptions(
        tls_trust_certs_file_path=_pem(properties, _TRUST, _TRUST_TYPE),
        tls_certificate_file_path=_pem(properties, _KEY, _KEY_TYPE),
        tls_validate_hostname=_flag(properties, _HOSTNAME, default=True),
    )


def _flag(properties: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = properties.get(name, "").strip().lower()
    if text not in {"", "true", "false"}:
        raise ConfigurationError(f"{name}={properties[name]}: expected true or false")
    return text == "true" if text else default


def _pem(properties: Mapping[str, str], name: str, type_name: str) -> str | None:
    """The path of a file with certificates; its type is its name's, unless it is said."""
    path = properties.get(name, "").strip()
    if not path:
        return None
    kind = properties.get(type_name, "").strip().upper()
    if kind != "PEM" and (kind or not path.endswith(".pem")):
        raise ConfigurationError(
            f"{name}={path}: only PEM is read, in files whose names end in .pem "
            f"or with {type_name}=PEM"
        )
    return path


def _max_bytes(properties: Mapping[str, str]) -> int:
    text = properties.get(_MAX_BYTES, "").strip()
    if not text:
        return SERVER_MAX_REQUEST_BYTES
    if not text.isdecimal() or not int(text):
        raise ConfigurationError(f"{_MAX_BYTES}={text}: expected a number of bytes")
    return int(text)


def _credentials(
    properties: Mapping[str, str], read_text: Callable[[str], str]
) -> DigestMd5Credentials | None:
    path = properties.get(_JAAS, "").strip()
    if not path or not _flag(properties, _SASL, default=True):
        return None
    section = properties.get(_SECTION, "").strip() or "Client"
    try:
        module, options = _login_module(read_text(path), section)
    except ValueError as error:
        raise ConfigurationError(f"{_JAAS}={path}: {error}") from None
    if module.rpartition(".")[2] != _DIGEST:
        raise ConfigurationError(
            f"{_JAAS}={path}: section {section} has {module}, "
            f"only org.apache.zookeeper.server.auth.{_DIGEST} is served"
        )
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise ConfigurationError(f"{_JAAS}={path}: section {section} has no {missing[0]}")
    return DigestMd5Credentials(username=options["username"], password=options["password"])


def _login_module(text: str, section: str) -> tuple[str, dict[str, str]]:
    """Class and options of the first module in a section of a JAAS configuration.

    Raises:
        ValueError: There is no such section, or the text has another form.
    """
    tokens = iter(_tokens(text))
    for name in tokens:
        if next(tokens, "") != "{":
            raise ValueError(f"expected {{ behind {name}")
        words: list[str] = []
        for word in tokens:
            if word == "}":
                break
            words.append(word)
        if next(tokens, "") != ";":
            raise ValueError(f"expected }}; at the end of section {name}")
        if name == section:
            return _module(words[: words.index(";")] if ";" in words else words, section)
    raise ValueError(f"there is no section {section}")


def _module(words: list[str], section: str) -> tuple[str, dict[str, str]]:
    """`class flag name = value name = value`."""
    options = words[2:]
    if not words or len(options) % 3 or any(each != "=" for each in options[1::3]):
        raise ValueError(f"section {section}: expected a class, a flag, and options name=value")
    return words[0], dict(zip(options[::3], options[2::3], strict=True))


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"can't be read from {text[at : at + 20]!r} on")
        at = found.end()
        if found["text"] is not None:
            yield re.sub(r"\\(.)", r"\1", found["text"])
        elif found["word"] or found["mark"]:
            yield found["word"] or found["mark"]
