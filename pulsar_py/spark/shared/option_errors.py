"""Names the option to change in errors of the cluster (pure).

Errors of clients name the topic and the address, but users of Spark write options. The class of the
error stays the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from pulsar_py.common.errors import (
    AuthenticationDataError,
    AuthenticationError,
    AuthorizationError,
    ClientError,
    PulsarError,
    ServiceError,
)
from pulsar_py.spark.shared.options import ClientOptions

AUTHENTICATION: Final = "pulsar.client.authParams"


@contextmanager
def naming_options(options: ClientOptions) -> Iterator[None]:
    """Put the option to change in front of errors of the cluster, where one can be found."""
    try:
        yield
    except (ServiceError, ClientError) as error:
        name = option_of(error, options)
        if name is None:
            raise
        raise type(error)(f"{name}: {error}") from error


def option_of(error: PulsarError, options: ClientOptions) -> str | None:
    """The option to change; None where it can't be found."""
    text = str(error)
    if isinstance(error, AuthenticationError | AuthenticationDataError):
        return AUTHENTICATION
    if isinstance(error, AuthorizationError):
        return f"the role that {AUTHENTICATION} stands for"
    urls = {"service.url": options.service_url, "admin.url": options.admin_url}
    web_hosts = hosts(options.admin_url or "")
    if any(re.search(f"https?://{re.escape(each)}", text) for each in web_hosts):
        del urls["service.url"]  # it may name the same host and port
    named = [name for name, url in urls.items() if url and any(map(text.__contains__, hosts(url)))]
    return named[0] if named and not text.startswith(named[0]) else None


def hosts(url: str) -> list[str]:
    """The hosts and ports of a URL; service URLs may have several."""
    places = urlsplit(url).netloc.rpartition("@")[2]
    return [each for each in re.split(r"[,\s]+", places) if each]
