"""Reads policies about what is stored, retention and persistence, out of requests (pure).

Each reader takes a request and returns the JSON to store, or None to unset the policy.

Source: RetentionPolicies, PersistencePolicies, and NamespacesBase in Pulsar's broker.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from msgspec import Struct, field

from pulsar_py.admin.declared import Body, Int, Long, Text, json_of
from pulsar_py.admin.http_messages import HttpError, Request
from pulsar_py.admin.policies.policy_readers import reading
from pulsar_py.common.policies import BacklogQuotaType

MAX_ENSEMBLE_SIZE: Final = 5
"""The largest ensemble that a persistence policy may ask for."""

MEBIBYTE: Final = 1024 * 1024

SIZE_QUOTA: Final = BacklogQuotaType.DESTINATION_STORAGE.value
"""The type of a backlog quota of bytes, which calls without a type are about."""


QUOTA_TYPE: Final = Text(
    "backlogQuotaType", tuple(member.value for member in BacklogQuotaType), SIZE_QUOTA
)


class RetentionBody(Struct, frozen=True, rename="camel"):
    """How long and how much acknowledged data is kept; -1 means without limit."""

    retention_time_in_minutes: Int = 0
    retention_size_in_mb: Long = field(default=0, name="retentionSizeInMB")


class PersistencePolicies(Struct, frozen=True, rename="camel"):
    """How many bookies an entry is written to, and how often cursors are stored."""

    bookkeeper_ensemble: Int = 2
    bookkeeper_write_quorum: Int = 2
    bookkeeper_ack_quorum: Int = 2
    managed_ledger_max_mark_delete_rate: float = 0.0


_RETENTION: Final = Body(RetentionBody, "retention")
_PERSISTENCE: Final = Body(PersistencePolicies, "persistence")


@reading(_RETENTION)
def retention(request: Request) -> Any:  # Any: JSON
    """The body as RetentionPolicies.

    Raises:
        HttpError: 400 if a limit is below -1, or one is 0 and the other not.
    """
    given = _RETENTION.of(request)
    if given is None:
        return None
    minutes, size = given.retention_time_in_minutes, given.retention_size_in_mb
    problem = ""
    if minutes < -1:
        problem = "time limit must be >= -1"
    elif size < -1:
        problem = "size limit must be >= -1"
    elif (minutes == 0) != (size == 0):
        problem = (
            "Setting a single time or size limit to 0 is invalid when one of the limits has a "
            "non-zero value. Use the value of -1 instead of 0 to ignore a specific limit. To "
            "disable retention both limits must be set to 0."
        )
    if problem:
        raise HttpError(HTTPStatus.BAD_REQUEST, f"Invalid retention policy: {problem}")
    return json_of(given)


def retention_is_above_quota(retention: Any, quota: Any) -> bool:  # Any: JSON
    """Whether a retention keeps more than a backlog of the size quota may have.

    Only limits that are set are compared, and only sizes: Apache Pulsar accepts an age quota over
    the retention's time.
    """
    if not retention or not quota:
        return True
    size = int(retention["retentionSizeInMB"])
    limit = int(quota.get("limitSize", -1))
    return size <= 0 or limit < 0 or limit < size * MEBIBYTE


def check_retention(retention: Any, quota: Any, *, changes: str, of: str) -> None:  # Any: JSON
    """Check that a retention keeps more than a backlog of the size quota may have.

    `changes` is the policy that is being set, `retention` or `quota`; `of` is whose it is.

    Raises:
        HttpError: 412 if the retention is below the quota.
    """
    if retention_is_above_quota(retention, quota):
        return
    problem = (
        "Retention Quota must exceed configured backlog quota"
        if changes == "retention"
        else "Backlog Quota exceeds configured retention quota"
    )
    raise HttpError(HTTPStatus.PRECONDITION_FAILED, f"{problem} for {of}.")


def quota_type(request: Request) -> str:
    """The type of backlog quota that a call is about; by default that of sizes.

    Raises:
        PathValueError: There is no such type.
    """
    return QUOTA_TYPE.of(request) or SIZE_QUOTA


@reading(_PERSISTENCE)
def persistence(request: Request) -> Any:  # Any: JSON
    """The body as PersistencePolicies.

    Raises:
        HttpError: 400 if the sizes are not in order, or beyond `MAX_ENSEMBLE_SIZE`.
    """
    given = _PERSISTENCE.of(request)
    if given is None:
        return None
    ensemble, write = given.bookkeeper_ensemble, given.bookkeeper_write_quorum
    ack = given.bookkeeper_ack_quorum
    sizes = (ensemble, write, ack)
    for what, size in zip(("Ensemble", "WriteQuorum", "AckQuorum"), sizes, strict=True):
        if not 0 < size <= MAX_ENSEMBLE_SIZE:
            raise HttpError(
                HTTPStatus.BAD_REQUEST, f"Bookkeeper-{what} must be <= {MAX_ENSEMBLE_SIZE} and > 0."
            )
    if not ensemble >= write >= ack:
        raise HttpError(
            HTTPStatus.BAD_REQUEST,
            f"Bookkeeper Ensemble ({ensemble}) >= WriteQuorum ({write}) >= AckQuorum ({ack})",
        )
    return json_of(given)
