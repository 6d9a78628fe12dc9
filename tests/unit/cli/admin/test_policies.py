"""What the options of policies mean."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pulsar_py.cli.admin import policies


@pytest.mark.parametrize(
    ("seconds", "size", "minutes", "megabytes"),
    [(90, 3 << 20, 1, 3), (-1, -1, -1, -1), (59, 1000, 0, 0)],
)
def test_retention_counts_whole_minutes_and_megabytes(
    seconds: int, size: int, minutes: int, megabytes: int
) -> None:
    found = policies.retention(SimpleNamespace(time=seconds, size=size))
    assert found.retention_time_in_minutes == minutes
    assert found.retention_size_in_mb == megabytes


def test_a_quota_has_the_bound_of_its_type_alone() -> None:
    args = SimpleNamespace(type="message_age", limit=5, limitTime=60, policy="p")
    found = policies.backlog_quota(args)
    assert (found.limit, found.limit_size, found.limit_time) == (-1, -1, 60)


def test_an_offload_to_another_driver_has_no_fields_of_s3() -> None:
    args = SimpleNamespace(
        driver="filesystem", region=None, bucket="b", endpoint=None, aws_id=None, aws_secret=None,
        s3_role=None, s3_role_session_name=None, offloadedReadPriority=None,
    )  # fmt: skip
    found = policies.offload_policies(args, block=1, buffer=2, after_bytes=None, after_seconds=None)
    assert found == {
        "managedLedgerOffloadDriver": "filesystem",
        "managedLedgerOffloadBucket": "b",
        "managedLedgerOffloadMaxBlockSizeInBytes": 1,
        "managedLedgerOffloadReadBufferSizeInBytes": 2,
    }
