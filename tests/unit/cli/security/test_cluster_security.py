from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.cli.security.cluster_security import bookie_tls, zookeeper_client
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.network.tls import TlsOptions
from pulsar_py.zookeeper.client_config import ZooKeeperClientConfig
from tests.certificates import Certificate

NAMES = (
    "bookkeeperTLSTrustCertsFilePath",
    "bookkeeperTLSCertificateFilePath",
    "bookkeeperTLSKeyFilePath",
)


def files(trusted: str = "", certificate: str = "", key: str = "") -> dict[str, str]:
    return dict(zip(NAMES, (trusted, certificate, key), strict=True))


def test_files_of_zookeepers_client_are_read_and_checked_at_once(tmp_path: Path) -> None:
    own = Certificate(tmp_path, "own", host="localhost")
    path = tmp_path / "zookeeper.properties"
    path.write_text(
        f"zookeeper.client.secure = true\nzookeeper.ssl.trustStore.type: PEM\n"
        f"zookeeper.ssl.trustStore.location={own.certificate_path}\n"
    )
    tls = zookeeper_client("metadataStoreConfigPath", str(path)).tls
    assert tls == TlsOptions(
        tls_trust_certs_file_path=own.certificate_path, tls_validate_hostname=True
    )
    assert zookeeper_client("metadataStoreConfigPath", "") == ZooKeeperClientConfig()
    path.write_text("zookeeper.client.secure=true\nzookeeper.ssl.trustStore.location=missing.pem\n")
    with pytest.raises(ConfigurationError, match=r"metadataStoreConfigPath=.*missing\.pem"):
        zookeeper_client("metadataStoreConfigPath", str(path))
    with pytest.raises(ConfigurationError, match=r"=/nowhere: .*No such"):
        zookeeper_client("metadataStoreConfigPath", "/nowhere")


def test_bookies_are_spoken_to_in_plain_unless_it_is_said(tmp_path: Path) -> None:
    own = Certificate(tmp_path, "own", host="localhost")
    assert bookie_tls(is_on=False, files=files(), validates_hostname=False) is None
    assert bookie_tls(
        is_on=True,
        files=files(own.certificate_path, own.certificate_path, own.key_path),
        validates_hostname=True,
    ) == TlsOptions(
        tls_trust_certs_file_path=own.certificate_path,
        tls_certificate_file_path=own.certificate_path,
        tls_private_key_file_path=own.key_path,
        tls_validate_hostname=True,
    )


def test_files_that_would_have_no_effect_or_are_missing_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="bookkeeperTLSKeyFilePath=k has no effect"):
        bookie_tls(is_on=False, files=files(key="k"), validates_hostname=False)
    with pytest.raises(ConfigurationError, match=r"TLS to bookies.*missing\.pem"):
        bookie_tls(is_on=True, files=files("missing.pem"), validates_hostname=False)
