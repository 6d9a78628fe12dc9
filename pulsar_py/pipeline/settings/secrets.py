"""Tokens and passwords: resolves references to them, and keeps them out of output (pure).

    --token env:NAME        the value of an environment variable, read where the command runs
    --token file:PATH       the content of a file, read wherever it is needed; it may change
    --option pulsar.client.authParams=env:NAME

`masked_arguments` replaces the values of secret options in a command line by such references, so
that the line can be shown, and works where the variables are set. `Redactor` removes values from
texts that other code made: errors, progress.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from pulsar_py.common.errors import ConfigurationError

MASK: Final = "***"
ENVIRONMENT: Final = "env:"
FILE: Final = "file:"

SENSITIVE_NAMES: Final = (
    "authparams|token|secret|passw|credential|private.?key|access.?key|session.?key"
)
"""Parts of the names of secret settings, in either case: a pattern for Python and for Java."""
_SECRET_NAME: Final = re.compile(SENSITIVE_NAMES, re.IGNORECASE)
_USER_IN_URL: Final = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_TOKENS: Final = frozenset({"--token", "--to-token"})
_ASSIGNED: Final = frozenset({"--option", "--conf"})
_MIN_LENGTH: Final = 4
"""Shorter values would be masked where they occur in other words by chance."""


def is_secret_name(name: str) -> bool:
    """Whether the value of a setting of that name is secret."""
    return _SECRET_NAME.search(name) is not None


def resolved(text: str, option: str, environ: Mapping[str, str]) -> str:
    """The value of `env:NAME`; other texts are returned unchanged.

    Raises:
        ConfigurationError: The environment has no such variable.
    """
    if not text.startswith(ENVIRONMENT):
        return text
    name = text.removeprefix(ENVIRONMENT)
    if name not in environ:
        raise ConfigurationError(
            f"{option}: the environment has no variable {name!r}; set it, or give the value by"
            " file:PATH"
        )
    return environ[name]


def masked_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """A command line without its secrets, and the environment variables that it needs then."""
    words: list[str] = []
    variables: list[str] = []
    option = ""
    for word in arguments:
        name, separator, value = word.partition("=")
        if option:
            words.append(_masked(option, word, variables))
            option = ""
        elif separator and name in _TOKENS | _ASSIGNED:
            words.append(f"{name}={_masked(name, value, variables)}")
        else:
            option = word if word in _TOKENS | _ASSIGNED else ""
            words.append(without_users(word))
    return words, list(dict.fromkeys(variables))


def _masked(option: str, value: str, variables: list[str]) -> str:
    if option in _TOKENS:
        name = "PULSAR_TOKEN" if option == "--token" else "PULSAR_TO_TOKEN"
        return _by_variable(value, name, variables)
    name, separator, text = value.partition("=")
    if not separator or not is_secret_name(name):
        return without_users(value)
    if option == "--conf":
        return f"{name}={MASK}"
    variable = re.sub(r"[^A-Za-z0-9]+", "_", name).upper()
    return f"{name}={_by_variable(text, variable, variables)}"


def _by_variable(value: str, variable: str, variables: list[str]) -> str:
    if value.startswith((ENVIRONMENT, FILE)):
        return value
    variables.append(variable)
    return f"{ENVIRONMENT}{variable}"


def masked_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings with the values of secret ones masked."""
    return {
        name: MASK if is_secret_name(name) else without_users(value) for name, value in conf.items()
    }


def without_users(text: str) -> str:
    """A text with users and passwords in its URLs masked."""
    return _USER_IN_URL.sub(MASK, text)


def users_in(text: str) -> list[str]:
    """Users and passwords in a text's URLs, and each password alone, as it stands and decoded.

    An error may have the decoded password without the URL.
    """
    found = _USER_IN_URL.findall(text)
    passwords = [each.partition(":")[2] for each in found]
    return [*found, *passwords, *map(unquote, passwords)]


class Redactor:
    """Masks secrets in texts; a run of a command has one."""

    def __init__(self, secrets: Iterable[str | None]) -> None:
        """Mask these values, but not those that are shorter than four characters."""
        known = {each for secret in secrets if secret for each in _forms(secret)}
        self._secrets = sorted((each for each in known if len(each) >= _MIN_LENGTH), key=len)

    def redacted(self, text: str) -> str:
        """The text with `***` in place of each secret."""
        for secret in reversed(self._secrets):
            text = text.replace(secret, MASK)
        return without_users(text)


def _forms(secret: str) -> set[str]:
    """A secret as it was given, and without the prefix `token:`; none of a reference to it."""
    is_elsewhere = secret.startswith((ENVIRONMENT, FILE))
    return set() if is_elsewhere else {secret, secret.removeprefix("token:")}


def secrets_of(settings: Mapping[str, str]) -> list[str]:
    """The values of the secret settings."""
    return [value for name, value in settings.items() if is_secret_name(name)]
