"""`pulsar-py tokens`: its options, what it writes, and that a broker takes its tokens."""

from __future__ import annotations

import stat
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from pulsar_py.cli.commands import main
from pulsar_py.client import AuthenticationToken, Client
from pulsar_py.standalone import Broker


def tokens(*arguments: object, **more: str) -> Result:
    words = ["tokens", *(str(each) for each in arguments)]
    return CliRunner().invoke(main, words, **more)  # type: ignore[arg-type]


def done(*arguments: object, **more: str) -> str:
    result = tokens(*arguments, **more)
    assert result.exit_code == 0, result.output
    return result.stdout


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "secret.key"
    done("create-secret-key", "--output", path)
    return path


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("create-secret-key", "-a --signature-algorithm -o --output -b --base64"),
        ("create-key-pair", "-a --signature-algorithm --output-private-key --output-public-key"),
        (
            "create",
            "-a --signature-algorithm -s --subject -e --expiry-time "  # noqa: ISC004
            "-sk --secret-key -pk --private-key -hs --headers",
        ),
        ("show", "-i --stdin -f --token-file"),
        (
            "validate",
            "-a --signature-algorithm -i --stdin -f --token-file -sk --secret-key -pk --public-key",
        ),
    ],
)
def test_the_tool_takes_apaches_options(command: str, options: str) -> None:
    context = click.Context(main)
    group = main.get_command(context, "tokens")
    assert isinstance(group, click.Group)
    found = {name for each in group.commands[command].params for name in each.opts}
    ours = {"-o", "--output", "--format"}  # of every command of ours
    assert found - {"token"} == set(options.split()) | (ours & found)


def test_secrets_are_written_for_their_owner_alone(tmp_path: Path) -> None:
    there = tmp_path / "there.key"
    there.write_bytes(b"former")
    there.chmod(0o644)
    done("create-secret-key", "-o", there)
    assert (mode(there), there.stat().st_size) == (0o600, 32)
    private, public = tmp_path / "private.key", tmp_path / "public.key"
    done(
        "create-key-pair", "-a", "ES256",
        "--output-private-key", private, "--output-public-key", public,
    )  # fmt: skip
    assert mode(private) == 0o600


def test_a_key_on_standard_output_has_no_end_of_line() -> None:
    assert len(tokens("create-secret-key", "-a", "HS384").stdout_bytes) == 48
    text = done("create-secret-key", "--base64")
    assert len(text) == 44
    made = done("create", "-s", "me", "-sk", f"data:;base64,{text}").strip()
    assert done("validate", made, "-sk", text) == '{"sub":"me"}\n'


def test_a_token_from_file_input_environment_or_argument(key: Path, tmp_path: Path) -> None:
    made = done("create", "--subject", "me", "--secret-key", f"file://{key}", "-hs", "kid=1")
    file = tmp_path / "me.jwt"
    file.write_text(made)
    expected = '{"alg":"HS256","kid":"1","typ":"JWT"}\n---\n{"sub":"me"}\n'
    assert done("show", "--token-file", file) == expected
    assert done("show", "--stdin", input=made) == expected
    assert done("show", made.strip()) == expected
    assert CliRunner().invoke(main, ["tokens", "show"], env={"TOKEN": made}).stdout == expected


def test_a_pair_of_keys_signs_and_checks(tmp_path: Path) -> None:
    private, public = tmp_path / "private.key", tmp_path / "public.key"
    done("create-key-pair", "--output-private-key", private, "--output-public-key", public)
    made = done("create", "-s", "me", "--private-key", private, "-e", "2y").strip()
    assert done("validate", made, "--public-key", public).startswith('{"sub":"me","exp":')
    assert tokens("validate", made, "-pk", public, "-a", "ES256").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["create", "-s", "me"], "Error: a key to sign with is needed"),
        (["create", "-s", "me", "-sk", "./missing.key"], "Error: --secret-key: neither a file"),
        (["create", "-s", "me", "-sk", "a", "-pk", "b"], "Error: give only one of"),
        (["create-secret-key", "-a", "RS256"], "expected one of HS256, HS384, HS512"),
        (["show"], "Error: a token is needed"),
        (["show", "a.b.c"], "Error: no token"),
    ],
)
def test_what_is_wrong_is_one_line(arguments: list[str], text: str) -> None:
    result = tokens(*arguments)
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)
    assert text in result.stderr


async def test_a_broker_takes_its_tokens(key: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.key"
    done("create-secret-key", "-o", other)
    config = {
        "authenticationEnabled": True,
        "authenticationProviders": (
            "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
        ),
        "tokenSecretKey": f"file://{key}",
        "brokerClientAuthenticationPlugin": "AuthenticationToken",
    }
    async with Broker(config=config) as broker:
        good, bad = (done("create", "-s", "me", "-e", "1h", "-sk", each) for each in (key, other))
        proof = AuthenticationToken(good.strip())
        async with Client(broker.service_url, authentication=proof) as client:
            await (await client.create_producer("t")).send(b"x")
        proof = AuthenticationToken(bad.strip())
        async with Client(broker.service_url, authentication=proof) as client:
            with pytest.raises(Exception, match="Failed to authenticate"):
                await client.create_producer("t")
