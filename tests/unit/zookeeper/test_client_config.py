from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.zookeeper.client_config import ZooKeeperClientConfig, client_config
from pulsar_py.zookeeper.digest_md5 import DigestMd5Credentials

SECURE = {"zookeeper.client.secure": "true"}
JAAS = {"java.security.auth.login.config": "jaas.conf"}
DIGEST = "org.apache.zookeeper.server.auth.DigestLoginModule"
CLIENT = f"""
/* of the
   broker */
Server {{ {DIGEST} required user_a="b"; }};
Client {{ // digest
    {DIGEST} required
    username="a\\"b" password="c;}} d";
}};
"""


def read(properties: dict[str, str], text: str = CLIENT) -> ZooKeeperClientConfig:
    return client_config(properties, {"jaas.conf": text}.__getitem__)


def test_without_properties_all_is_plain() -> None:
    assert read({}) == ZooKeeperClientConfig()
    assert read({"zookeeper.client.secure": "false", "zookeeper.ssl.keyStore.location": "k"}) == (
        ZooKeeperClientConfig()
    )


def test_stores_of_certificates_are_pem_by_name_or_by_type() -> None:
    tls = read(
        {
            **SECURE,
            "zookeeper.ssl.trustStore.location": "trusted.pem",
            "zookeeper.ssl.keyStore.location": "own",
            "zookeeper.ssl.keyStore.type": "pem",
        }
    ).tls
    assert tls is not None
    assert (tls.tls_trust_certs_file_path, tls.tls_certificate_file_path) == ("trusted.pem", "own")
    assert tls.tls_validate_hostname


def test_names_of_hosts_are_checked_unless_it_is_said() -> None:
    tls = read({**SECURE, "zookeeper.ssl.hostnameVerification": "False"}).tls
    assert tls is not None
    assert not tls.tls_validate_hostname


def test_the_section_of_jaas_says_who_the_client_is() -> None:
    known = DigestMd5Credentials(username='a"b', password="c;} d")
    assert read(JAAS).sasl == known
    assert read({**JAAS, "zookeeper.sasl.client": "false"}).sasl is None
    other = f'Other {{ {DIGEST} required username="o" password="p"; }};'
    named = read({**JAAS, "zookeeper.sasl.clientconfig": "Other"}, CLIENT + other).sasl
    assert named == DigestMd5Credentials(username="o", password="p")


def test_the_bound_of_the_servers_is_taken_over() -> None:
    assert read({"jute.maxbuffer": "4194304"}).max_request_bytes == 4 * 1024 * 1024
    assert (
        read({"jute.maxbuffer": " "}).max_request_bytes == ZooKeeperClientConfig().max_request_bytes
    )


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"zookeeper.server.principal": "zookeeper/host"}, "zookeeper.server.principal is not"),
        ({"zookeeper.client.secure": "yes"}, "expected true or false"),
        ({**SECURE, "zookeeper.ssl.keyStore.location": "key.jks"}, "key.jks: only PEM"),
        ({"jute.maxbuffer": "0"}, "expected a number of bytes"),
        ({"jute.maxbuffer": "0x10"}, "expected a number of bytes"),
    ],
)
def test_what_is_not_served_is_refused(properties: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        read(properties)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "there is no section Client"),
        ("Client org", "expected {"),
        (f"Client {{ {DIGEST} required }}", "expected };"),
        (f'Client {{ {DIGEST} required username "a"; }};', "options name=value"),
        (f'Client {{ {DIGEST} required username="a"; }};', "has no password"),
        ("Client { com.sun.security.auth.module.Krb5LoginModule required; };", "only .*Digest"),
        ('Client { "open', "can't be read from"),
    ],
)
def test_another_jaas_configuration_is_refused_with_its_file(text: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=f"config=jaas.conf: .*{reason}"):
        read(JAAS, text)
