"""Retention and persistence in requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pulsar_py.admin.http_messages import HttpError, Request, UnreadableBodyError
from pulsar_py.admin.policies.storage_values import (
    persistence,
    retention,
    retention_is_above_quota,
)


def request(body: Any) -> Request:
    return Request(method="POST", raw_path="/", body=json.dumps(body).encode())


def limits(minutes: int, megabytes: int) -> dict[str, int]:
    return {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}


@pytest.mark.parametrize(("minutes", "size"), [(0, 0), (-1, -1), (5, -1), (-1, 5), (5, 5)])
def test_both_limits_are_set_or_none(minutes: int, size: int) -> None:
    assert retention(request(limits(minutes, size))) == limits(minutes, size)


@pytest.mark.parametrize(("minutes", "size"), [(0, 5), (5, 0), (-2, 5), (5, -2)])
def test_other_limits_are_refused(minutes: int, size: int) -> None:
    with pytest.raises(HttpError, match="Invalid retention policy"):
        retention(request(limits(minutes, size)))


@pytest.mark.parametrize(
    ("size", "quota", "is_above"),
    [(1, 2**20 - 1, True), (1, 2**20, False), (-1, 2**40, True), (1, -1, True), (0, 5, True)],
)
def test_retention_has_to_keep_more_than_the_quota(size: int, quota: int, is_above: bool) -> None:  # noqa: FBT001
    assert retention_is_above_quota(limits(5, size), {"limitSize": quota}) is is_above
    assert retention_is_above_quota(None, {"limitSize": quota})
    assert retention_is_above_quota(limits(5, size), None)


def sizes(ensemble: int, write: int, ack: int, rate: Any = 1) -> dict[str, Any]:
    return {
        "bookkeeperEnsemble": ensemble,
        "bookkeeperWriteQuorum": write,
        "bookkeeperAckQuorum": ack,
        "managedLedgerMaxMarkDeleteRate": rate,
    }


def test_sizes_of_ensembles_are_in_order() -> None:
    assert persistence(request(sizes(3, 2, 2))) == sizes(3, 2, 2)
    assert persistence(request(None)) is None
    for wrong in (sizes(2, 3, 1), sizes(3, 1, 2), sizes(6, 1, 1), sizes(1, 1, 0)):
        with pytest.raises(HttpError):
            persistence(request(wrong))
    with pytest.raises(UnreadableBodyError):
        persistence(request(sizes(1, 1, 1, "often")))
