"""The file of contexts, and `client.conf`."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.cli.connecting.contexts import (
    KEYS,
    ContextError,
    Contexts,
    client_conf,
    contexts_path,
    load_contexts,
    save_contexts,
)

GIVEN = Contexts("b", {"a": {}, "b": {"webServiceUrl": "http://b:8080", "authParams": "token:x"}})


def test_what_is_saved_is_loaded_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "settings" / "contexts.json"
    save_contexts(path, GIVEN)
    assert load_contexts(path) == GIVEN
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["contexts.json"]
    assert GIVEN.used() == {"webServiceUrl": "http://b:8080", "authParams": "token:x"}


def test_without_a_file_there_are_none(tmp_path: Path) -> None:
    found = load_contexts(tmp_path / "none")
    assert found == Contexts()
    assert not found.used()


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "contexts.json"
    save_contexts(path, GIVEN)
    path.chmod(0o644)
    with pytest.raises(ContextError, match="chmod 600"):
        load_contexts(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"contexts": {"a": 1}}', '{"contexts": 1}'])
def test_a_file_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "contexts.json"
    path.touch(mode=0o600)
    path.write_text(text)
    with pytest.raises(ContextError, match="pulsar-py context"):
        load_contexts(path)


def test_where_the_file_is() -> None:
    assert contexts_path({"PULSAR_PY_CONTEXTS": "/x"}) == Path("/x")
    assert contexts_path({"XDG_CONFIG_HOME": "/c"}) == Path("/c/pulsar_py/contexts.json")
    assert contexts_path({}) == Path("~/.config/pulsar_py/contexts.json").expanduser()


def test_client_conf(tmp_path: Path) -> None:
    path = tmp_path / "client.conf"
    path.write_text(
        "# webServiceUrl=http://not:1\n\nwebServiceUrl = http://a:8080/\nauthPlugin=\n"
        'authParams={"a": "b=c"}\nuseTls=true\nbrokerServiceUrl=pulsar://a:6650\n'
    )
    assert client_conf(path) == {
        "webServiceUrl": "http://a:8080/",
        "authParams": '{"a": "b=c"}',
        "brokerServiceUrl": "pulsar://a:6650",
    }
    with pytest.raises(ContextError, match="nosuch"):
        client_conf(tmp_path / "nosuch")


def test_an_older_service_url_is_for_the_tool_that_speaks_its_protocol(tmp_path: Path) -> None:
    path = tmp_path / "client.conf"
    path.write_text("serviceUrl=http://a:8080\n")
    assert client_conf(path) == {"webServiceUrl": "http://a:8080"}
    path.write_text("serviceUrl=pulsar+ssl://a:6651\nwebServiceUrl=http://b:8080\n")
    assert client_conf(path) == {
        "brokerServiceUrl": "pulsar+ssl://a:6651",
        "webServiceUrl": "http://b:8080",
    }
    path.write_text("serviceUrl=http://a:8080\nwebServiceUrl=http://b:8080\n")
    assert client_conf(path) == {"webServiceUrl": "http://b:8080"}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("webserviceurl", "webServiceUrl"),
        ("brokerServiceURL", "brokerServiceUrl"),
        ("authParam", "authParams"),
        ("serviceURL", "serviceUrl"),
        ("servceUrl", "serviceUrl"),
        ("tlsTrustCertFilePath", "tlsTrustCertsFilePath"),
    ],
)
def test_a_slip_in_a_name_is_told(tmp_path: Path, written: str, meant: str) -> None:
    path = tmp_path / "client.conf"
    path.write_text(f"{written}=x\n")
    with pytest.raises(ContextError, match=f"named {written}; did you mean {meant}\\?"):
        client_conf(path)


APACHE: dict[str, str] = {
    "webServiceUrl": "http://localhost:8080/",
    "brokerServiceUrl": "pulsar://localhost:6650/",
    "authPlugin": "",
    "authParams": "",
    "tlsAllowInsecureConnection": "false",
    "tlsEnableHostnameVerification": "false",
    "tlsTrustCertsFilePath": "",
    "tlsCertificateFilePath": "",
    "tlsKeyFilePath": "",
    "useKeyStoreTls": "false",
    "tlsTrustStoreType": "JKS",
    "tlsTrustStorePath": "",
    "tlsTrustStorePassword": "",
    "tlsKeyStoreType": "JKS",
    "tlsKeyStorePath": "",
    "tlsKeyStorePassword": "",
    "webserviceTlsProvider": "",
    "proxyServiceUrl": "",
    "proxyProtocol": "",
}
"""The keys of Apache Pulsar's `client.conf`, with the values that they have there."""


def test_apache_pulsars_client_conf_loads(tmp_path: Path) -> None:
    path = tmp_path / "client.conf"
    path.write_text("".join(f"{key}={value}\n" for key, value in APACHE.items()))
    assert client_conf(path) == {
        key: value for key, value in APACHE.items() if value and key in KEYS
    }


@pytest.mark.parametrize("key", sorted(APACHE.keys() - set(KEYS)))
def test_what_is_not_offered_is_refused_with_the_reason(tmp_path: Path, key: str) -> None:
    path = tmp_path / "client.conf"
    path.write_text(f"{key}=true\n")
    with pytest.raises(ContextError, match=f"{key}=.*(keytool|OpenSSL|SNI)") as caught:
        client_conf(path)
    assert "Password=true" not in str(caught.value)
