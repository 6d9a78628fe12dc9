"""Named clusters that `pulsar-py context` keeps in a file, and the values of `client.conf` (edge).

The file is JSON, `{"current": NAME, "contexts": {NAME: {KEY: VALUE}}}`, with the keys of
`client.conf`; it may hold tokens, so only its owner may read it (0600, in a directory with 0700).
It is written beside and renamed, so that a reader sees the old one or the new one.

Source: `client.conf` of Apache Pulsar, whose form is that of Java's properties.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

KEYS: Final = (
    "webServiceUrl",
    "brokerServiceUrl",
    "authPlugin",
    "authParams",
    "tlsTrustCertsFilePath",
    "tlsAllowInsecureConnection",
    "tlsEnableHostnameVerification",
    "tlsCertificateFilePath",
    "tlsKeyFilePath",
)
"""What a context may hold, and what of `client.conf` is read."""

_STORES: Final = (
    "certificates and keys are read from PEM files (tlsTrustCertsFilePath, tlsCertificateFilePath, "
    "tlsKeyFilePath); of a JKS store they are made with: keytool -importkeystore -srckeystore "
    "STORE.jks -destkeystore STORE.p12 -deststoretype PKCS12 && openssl pkcs12 -in STORE.p12 "
    "-nodes -out STORE.pem"
)
_PROXY: Final = (
    "no proxy is told by SNI which broker is meant; Pulsar's own proxy is named in brokerServiceUrl"
)
_REFUSED: Final[Mapping[str, tuple[str, str]]] = {
    "useKeyStoreTls": ("false", _STORES),
    "tlsTrustStoreType": ("JKS", _STORES),
    "tlsTrustStorePath": ("", _STORES),
    "tlsTrustStorePassword": ("", _STORES),
    "tlsKeyStoreType": ("JKS", _STORES),
    "tlsKeyStorePath": ("", _STORES),
    "tlsKeyStorePassword": ("", _STORES),
    "webserviceTlsProvider": ("", "TLS is that of OpenSSL, there is no other provider"),
    "proxyServiceUrl": ("", _PROXY),
    "proxyProtocol": ("", _PROXY),
    "sslFactoryPlugin": ("", "Java's classes can't be loaded"),
    "sslFactoryPluginParams": ("", "Java's classes can't be loaded"),
}
"""Keys of Apache Pulsar's `client.conf` that are not offered: the value that asks for nothing, and
the reason."""

_BOTH_URLS: Final = "serviceUrl"
"""An older key of Apache Pulsar's; its tools take it where theirs is missing or empty."""

_LEAST_LIKENESS: Final = 0.8

_PUBLIC_BITS: Final = 0o077


class ContextError(Exception):
    """A context or its file is not what it should be; the text says what to do."""


@dataclass(slots=True)
class Contexts:
    """All contexts, and which one is used."""

    current: str | None = None
    contexts: dict[str, dict[str, str]] = field(default_factory=dict)

    def used(self) -> Mapping[str, str]:
        """The values of the context in use; none without one."""
        return self.contexts.get(self.current or "", {})


def contexts_path(environment: Mapping[str, str]) -> Path:
    """`$PULSAR_PY_CONTEXTS`, or `pulsar_py/contexts.json` in the user's directory of settings."""
    if given := environment.get("PULSAR_PY_CONTEXTS"):
        return Path(given)
    home = environment.get("XDG_CONFIG_HOME") or str(Path("~").expanduser() / ".config")
    return Path(home) / "pulsar_py" / "contexts.json"


def load_contexts(path: Path) -> Contexts:
    """The contexts of a file; none if there is no file.

    Raises:
        ContextError: Others may read it, or it is not of the form above.
    """
    from pulsar_py.common.foreign_json import parse_json

    try:
        mode = path.stat().st_mode
        text = path.read_text()
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise ContextError(f"{path}: {error.strerror}") from error
    if mode & _PUBLIC_BITS:
        raise ContextError(f"{path}: others may read it, and it may hold tokens: chmod 600 {path}")
    try:
        found: Any = parse_json(text)
        given = {
            str(name): {str(key): str(value) for key, value in values.items()}
            for name, values in found["contexts"].items()
        }
        current = found.get("current")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ContextError(f"{path}: expected the JSON that pulsar-py context writes") from error
    return Contexts(None if current is None else str(current), given)


def save_contexts(path: Path, contexts: Contexts) -> None:
    """Replace the file.

    Raises:
        ContextError: It can't be written.
    """
    text = json.dumps({"current": contexts.current, "contexts": contexts.contexts}, indent=2)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = path.with_name(f".{path.name}.new")
        temporary.touch(mode=0o600)
        temporary.chmod(0o600)  # one that a crash left behind
        temporary.write_text(f"{text}\n")
        temporary.replace(path)
    except OSError as error:
        raise ContextError(f"{path}: {error.strerror}") from error


def client_conf(path: Path) -> dict[str, str]:
    """The values of a `client.conf` that are used here; empty ones are left out.

    Raises:
        ContextError: It can't be read, has a slip in a name, or asks for what is not offered.
    """
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ContextError(f"{path}: {error}") from error
    found = {}
    for line in lines:
        key, separator, value = (each.strip() for each in line.strip().partition("="))
        if not (separator and value) or key.startswith(("#", "!")):
            continue
        if key in KEYS or key == _BOTH_URLS:
            found[key] = value
        elif key in _REFUSED and value.lower() != _REFUSED[key][0].lower():
            shown = "…" if "Password" in key else value
            raise ContextError(f"{path}: {key}={shown}: {_REFUSED[key][1]}")
        elif key not in _REFUSED and (nearest := _nearest(key)):
            raise ContextError(f"{path}: nothing is named {key}; did you mean {nearest}?")
    if url := found.pop(_BOTH_URLS, ""):
        is_web = url.startswith(("http:", "https:"))
        found.setdefault("webServiceUrl" if is_web else "brokerServiceUrl", url)
    return found


def _nearest(key: str) -> str:
    """The key that this one is a slip of; empty for one that other tools may have."""
    from difflib import get_close_matches

    known = {each.lower(): each for each in (*KEYS, _BOTH_URLS)}
    near = get_close_matches(key.lower(), known, n=1, cutoff=_LEAST_LIKENESS)
    return known[near[0]] if near else ""
