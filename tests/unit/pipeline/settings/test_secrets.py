"""Names of secret settings, and masking of their values."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.settings.secrets import (
    Redactor,
    is_secret_name,
    masked_arguments,
    masked_settings,
    resolved,
    secrets_of,
    without_users,
)


@pytest.mark.parametrize(
    "name",
    [
        "pulsar.client.authParams",
        "pulsar.client.tlsTrustStorePassword",
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.access.key",
        "AWS_SESSION_TOKEN",
    ],
)
def test_names_tell_secrets(name: str) -> None:
    assert is_secret_name(name)
    assert masked_settings({name: "x"}) == {name: "***"}
    assert secrets_of({name: "x", "topic": "t"}) == ["x"]


def test_other_names_do_not() -> None:
    assert not any(
        map(is_secret_name, ["topic", "service.url", "pulsar.client.operationTimeoutMs"])
    )


@pytest.mark.parametrize(
    ("given", "shown", "variables"),
    [
        (["--token", "abc"], ["--token", "env:PULSAR_TOKEN"], ["PULSAR_TOKEN"]),
        (["--to-token=abc"], ["--to-token=env:PULSAR_TO_TOKEN"], ["PULSAR_TO_TOKEN"]),
        (["--token", "file:/a"], ["--token", "file:/a"], []),
        (["--token", "env:MINE"], ["--token", "env:MINE"], []),
        (["--option", "valueMode=raw"], ["--option", "valueMode=raw"], []),
        (
            ["--option", "pulsar.client.authParams=token:abc"],
            ["--option", "pulsar.client.authParams=env:PULSAR_CLIENT_AUTHPARAMS"],
            ["PULSAR_CLIENT_AUTHPARAMS"],
        ),
        (["--conf=a.password=b"], ["--conf=a.password=***"], []),
        (["--service-url", "pulsar://me:pw@h"], ["--service-url", "pulsar://***@h"], []),
        (["--where", "a = 'x@y'", "--token"], ["--where", "a = 'x@y'", "--token"], []),
    ],
)
def test_command_lines_that_can_be_shown(
    given: list[str], shown: list[str], variables: list[str]
) -> None:
    assert masked_arguments(given) == (shown, variables)


def test_variables_stand_for_values() -> None:
    assert resolved("env:A", "--token", {"A": "x"}) == "x"
    assert resolved("A", "--token", {}) == "A"
    with pytest.raises(ConfigurationError, match="--token: the environment has no variable 'B'"):
        resolved("env:B", "--token", {"A": "x"})


def test_texts_lose_their_secrets() -> None:
    redactor = Redactor(["token:abcd", "abcdef", None, "", "xy", "file:/etc"])
    assert redactor.redacted("abcdef abcd xy file:/etc http://me:pw@h/") == (
        "*** *** xy file:/etc http://***@h/"
    )
    assert without_users("a@b https://c@d") == "a@b https://***@d"
