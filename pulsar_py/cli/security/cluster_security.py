"""Makes a broker's TLS and credentials for ZooKeeper and bookies from its settings (edge)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.network.tls import TlsOptions, client_ssl_context
from pulsar_py.server.properties_text import parse_properties
from pulsar_py.zookeeper.client_config import ZooKeeperClientConfig, client_config


def zookeeper_client(setting: str, path: str) -> ZooKeeperClientConfig:
    """What a file of ZooKeeper's properties says; nothing is read for an empty path.

    Raises:
        ConfigurationError: It can't be read, or asks for what is not served; names the setting.
    """
    if not path:
        return ZooKeeperClientConfig()
    try:
        config = client_config(parse_properties(_read(path)), _read)
        if config.tls is not None:
            client_ssl_context(config.tls)  # its files are there, and hold what they should
    except (ConfigurationError, OSError) as error:
        raise ConfigurationError(f"{setting}={path}: {error}") from None
    return config


def bookie_tls(
    *, is_on: bool, files: Mapping[str, str], validates_hostname: bool
) -> TlsOptions | None:
    """The TLS settings for bookies; None for plain connections.

    `files` are, by the names of their settings, the trusted certificates, the broker's certificate
    and its key; an empty path is none.

    Raises:
        ConfigurationError: Files are named although there shall be no TLS, or can't be read.
    """
    if not is_on:
        for name, path in files.items():
            if path:
                raise ConfigurationError(
                    f"{name}={path} has no effect without bookkeeperTLSClientAuthentication=true"
                )
        return None
    trusted, certificate, key = (path or None for path in files.values())
    options = TlsOptions(
        tls_trust_certs_file_path=trusted,
        tls_certificate_file_path=certificate,
        tls_private_key_file_path=key,
        tls_validate_hostname=validates_hostname,
    )
    try:
        client_ssl_context(options)
    except ConfigurationError as error:
        raise ConfigurationError(f"TLS to bookies, bookkeeperTLS…: {error}") from None
    return options


def _read(path: str) -> str:
    return Path(path).read_text("utf-8")
