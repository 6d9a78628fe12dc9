"""Reads policies about what is stored, retention and persistence, out of requests (pure).

Each reader takes a request and returns the JSON to store, or None to unset the policy.

Source: RetentionPolicies, PersistencePolicies, and NamespacesBase in Pulsar's broker.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from pulsar_py.admin.http_messages import HttpError, PathValueError, Request
from pulsar_py.admin.resources.requests import (
    LONG_BITS,
    number_field,
    read_float,
    read_object,
)
from pulsar_py.common.policies import BacklogQuotaType

MAX_ENSEMBLE_SIZE: Final = 5
"""The largest ensemble that a persistence policy may ask for."""

MEBIBYTE: Final = 1024 * 1024

SIZE_QUOTA: Final = BacklogQuotaType.DESTINATION_STORAGE.value
"""The type of a backlog quota of bytes, which calls without a type are about."""


def retention(request: Request) -> Any:  # Any: JSON
    """The body as RetentionPolicies.

    Raises:
        HttpError: 400 if a limit is below -1, or one is 0 and the other not.
    """
    fields = read_object(request.json())
    if fields is None:
        return None
    minutes = number_field(fields, "retentionTimeInMinutes")
    size = number_field(fields, "retentionSizeInMB", bits=LONG_BITS)
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
    return {"retentionTimeInMinutes": minutes, "retentionSizeInMB": size}


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
        HttpError: 412 if it does not.
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
    kind = request.query.get("backlogQuotaType", SIZE_QUOTA)
    if kind not in {member.value for member in BacklogQuotaType}:
        raise PathValueError
    return kind


def persistence(request: Request) -> Any:  # Any: JSON
    """The body as PersistencePolicies.

    Raises:
        HttpError: 400 if the sizes are not in order, or beyond `MAX_ENSEMBLE_SIZE`.
    """
    fields = read_object(request.json())
    if fields is None:
        return None
    sizes = [
        number_field(fields, name, 2)
        for name in ("bookkeeperEnsemble", "bookkeeperWriteQuorum", "bookkeeperAckQuorum")
    ]
    ensemble, write, ack = sizes
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
    rate = read_float(
        fields.get("managedLedgerMaxMarkDeleteRate"), "managedLedgerMaxMarkDeleteRate"
    )
    return {
        "bookkeeperEnsemble": ensemble,
        "bookkeeperWriteQuorum": write,
        "bookkeeperAckQuorum": ack,
        "managedLedgerMaxMarkDeleteRate": rate or 0.0,
    }
