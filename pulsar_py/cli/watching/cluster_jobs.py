"""Asks all brokers of a cluster for `pulsar-py doctor --cluster` (edge).

The broker that is asked first names the others by their reports. Each is asked with the same
credentials, and never without TLS where the first one is asked with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

from pulsar_py.admin_client import AdminClient, AdminSettings, brokers
from pulsar_py.cli.watching.cluster_view import ClusterView
from pulsar_py.cli.watching.doctor_jobs import plain
from pulsar_py.common.errors import ConfigurationError, PulsarError

__all__ = ["as_json", "as_text", "is_well", "view_of"]

Json = dict[str, Any]  # Any: JSON

AT_ONCE: Final = 16
"""Brokers that are asked at the same time."""
TIMEOUT_SECONDS: Final = 10.0
"""For each answer of another broker: one that hangs must not hold the others up."""


def view_of(admin: AdminSettings) -> ClusterView:
    """What the brokers say now; a broker without a cluster is one alone.

    Raises:
        ServiceError, ClientError: The broker that is asked first refused, or can't be reached.
    """
    with AdminClient(admin) as calls:
        first: Json = calls.call(brokers.load())
        symptoms: dict[str, Sequence[Json]] = {first["brokerId"]: calls.call(brokers.symptoms())}
    loads = {first["brokerId"]: first}
    failures: dict[str, str] = {}
    others = [each for each in first["brokers"] if each["brokerId"] != first["brokerId"]]
    with ThreadPoolExecutor(AT_ONCE, "pulsar-py doctor") as pool:
        for report, answer in zip(
            others, pool.map(lambda each: _ask(admin, each), others), strict=True
        ):
            if isinstance(answer, str):
                failures[report["brokerId"]] = answer
            else:
                loads[report["brokerId"]], symptoms[report["brokerId"]] = answer
    return ClusterView(loads=loads, symptoms=symptoms, failures=failures)


def _ask(admin: AdminSettings, report: Json) -> tuple[Json, Sequence[Json]] | str:
    """What another broker says of its load and its symptoms, or why it says nothing."""
    try:
        settings = replace(admin, url=address_of(admin, report), timeout_seconds=TIMEOUT_SECONDS)
        with AdminClient(settings) as calls:
            return calls.call(brokers.load()), calls.call(brokers.symptoms())
    except PulsarError as error:
        return str(error)


def address_of(admin: AdminSettings, report: Json) -> str:
    """The REST address of another broker; with TLS where that of the first one has it.

    Raises:
        ConfigurationError: It tells no such address.
    """
    is_secure = admin.url.startswith("https:")
    url: str | None = report.get("webUrlTls") if is_secure else report.get("webUrl")
    if not url:
        kind = "address with TLS" if is_secure else "address"
        raise ConfigurationError(f"it tells no {kind} of its REST API")
    return url


def is_well(view: ClusterView) -> bool:
    """Whether nothing is an error."""
    return not any(each["urgency"] == "error" for each in view.findings())


def as_text(view: ClusterView) -> Iterator[str]:
    """Lines for people; what others chose is printed without control characters."""
    return map(plain, view.as_text())


def as_json(view: ClusterView) -> str:
    """One object, for programs."""
    return json.dumps(view.as_json(), separators=(",", ":"))
