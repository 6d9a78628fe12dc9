"""Reading offload policies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pulsar_py.admin.http_messages import HttpError, Request, UnreadableBodyError
from pulsar_py.admin.policies.offload_values import completed, offload_policies


def read(value: Any) -> Any:
    return offload_policies(Request(method="POST", raw_path="/", body=json.dumps(value).encode()))


S3 = {"managedLedgerOffloadDriver": "aws-s3", "managedLedgerOffloadBucket": "b"}


def test_defaults_are_added_and_unknown_fields_dropped() -> None:
    value = read({**S3, "managedLedgerOffloadThresholdInBytes": "7", "colour": "red"})
    assert (value["managedLedgerOffloadThresholdInBytes"], value["s3Driver"]) == (7, True)
    assert value["managedLedgerOffloadMaxThreads"] == 2
    assert "managedLedgerOffloadedReadPriority" not in value
    assert "colour" not in value
    assert "managedLedgerOffloadThresholdInSeconds" not in value


def test_each_driver_has_its_bucket() -> None:
    assert read({"managedLedgerOffloadDriver": "filesystem"})["fileSystemDriver"]
    gcs = {"managedLedgerOffloadDriver": "google-cloud-storage"}
    assert read({**gcs, "gcsManagedLedgerOffloadBucket": "b"})["gcsDriver"]
    with pytest.raises(HttpError, match="bucket"):
        read(gcs)
    for wrong in ({"managedLedgerOffloadDriver": "tape"}, {}, None):
        with pytest.raises(HttpError):
            read(wrong)
    with pytest.raises(UnreadableBodyError):
        read({**S3, "managedLedgerOffloadMaxThreads": "many"})


def test_a_number_alone_is_completed() -> None:
    assert completed({"managedLedgerOffloadThresholdInBytes": 1})["s3Driver"] is False
