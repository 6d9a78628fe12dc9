"""Reads offload policies out of requests, with the defaults that Apache Pulsar adds (pure).

Source: OffloadPoliciesImpl in Pulsar; validateOffloadPolicies in NamespacesBase.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from pulsar_py.admin.declared import Body
from pulsar_py.admin.http_messages import HttpError, Request
from pulsar_py.admin.json_values import LONG_BITS, read_int, read_properties, read_text
from pulsar_py.admin.policies.policy_readers import reading
from pulsar_py.server.policies.policy_events import driver_kinds

DRIVERS: Final = ("S3", "aws-s3", "google-cloud-storage", "filesystem", "azureblob", "aliyun-oss")

THRESHOLD_BYTES: Final = "managedLedgerOffloadThresholdInBytes"
THRESHOLD_SECONDS: Final = "managedLedgerOffloadThresholdInSeconds"
DELETION_LAG: Final = "managedLedgerOffloadDeletionLagInMillis"

_PRIORITIES: Final = ("BOOKKEEPER_FIRST", "TIERED_STORAGE_FIRST")

DEFAULTS: Final[dict[str, Any]] = {  # Any: JSON of many types
    "offloadersDirectory": "./offloaders",
    "managedLedgerOffloadMaxThreads": 2,
    "managedLedgerOffloadReadThreads": 2,
    "managedLedgerOffloadPrefetchRounds": 1,
    "managedLedgerExtraConfigurations": {},
    "s3ManagedLedgerOffloadMaxBlockSizeInBytes": 67_108_864,
    "s3ManagedLedgerOffloadReadBufferSizeInBytes": 1_048_576,
    "s3ManagedLedgerOffloadRoleSessionName": "pulsar-s3-offload",
    "gcsManagedLedgerOffloadMaxBlockSizeInBytes": 134_217_728,
    "gcsManagedLedgerOffloadReadBufferSizeInBytes": 1_048_576,
}

_TEXTS: Final = (
    "offloadersDirectory",
    "managedLedgerOffloadDriver",
    "managedLedgerOffloadBucket",
    "managedLedgerOffloadRegion",
    "managedLedgerOffloadServiceEndpoint",
    "s3ManagedLedgerOffloadRegion",
    "s3ManagedLedgerOffloadBucket",
    "s3ManagedLedgerOffloadServiceEndpoint",
    "s3ManagedLedgerOffloadCredentialId",
    "s3ManagedLedgerOffloadCredentialSecret",
    "s3ManagedLedgerOffloadRole",
    "s3ManagedLedgerOffloadRoleSessionName",
    "gcsManagedLedgerOffloadRegion",
    "gcsManagedLedgerOffloadBucket",
    "gcsManagedLedgerOffloadServiceAccountKeyFile",
    "fileSystemProfilePath",
    "fileSystemURI",
)
_NUMBERS: Final = (
    "managedLedgerOffloadMaxThreads",
    "managedLedgerOffloadReadThreads",
    "managedLedgerOffloadPrefetchRounds",
    THRESHOLD_BYTES,
    THRESHOLD_SECONDS,
    DELETION_LAG,
    "managedLedgerOffloadMaxBlockSizeInBytes",
    "managedLedgerOffloadReadBufferSizeInBytes",
    "s3ManagedLedgerOffloadMaxBlockSizeInBytes",
    "s3ManagedLedgerOffloadReadBufferSizeInBytes",
    "gcsManagedLedgerOffloadMaxBlockSizeInBytes",
    "gcsManagedLedgerOffloadReadBufferSizeInBytes",
)


_POLICIES: Final = Body(dict[str, Any], "offload policies")


@reading(_POLICIES)
def offload_policies(request: Request) -> Any:  # Any: JSON
    """The body as OffloadPolicies.

    Raises:
        HttpError: 412 without a body, for an unknown driver, or without the bucket that it needs.
    """
    fields = _POLICIES.of(request)
    if fields is None:
        raise _refused("The offloadPolicies must be specified for namespace offload.")
    given: dict[str, Any] = {name: read_text(fields.get(name), name) for name in _TEXTS}
    given |= {name: read_int(fields.get(name), name, bits=LONG_BITS) for name in _NUMBERS}
    priority = read_text(fields.get("managedLedgerOffloadedReadPriority"))
    given["managedLedgerOffloadedReadPriority"] = priority if priority in _PRIORITIES else None
    name = "managedLedgerExtraConfigurations"
    given[name] = read_properties(fields.get(name), name)
    value = completed({each: text for each, text in given.items() if text is not None})
    driver = value.get("managedLedgerOffloadDriver")
    if (driver or "").lower() not in {each.lower() for each in DRIVERS}:
        raise _refused(f"The driver is not supported, support value: {','.join(DRIVERS)}")
    buckets = ("", "s3", "gcs")
    if not value["fileSystemDriver"] and not any(
        value.get(f"{each}{'M' if each else 'm'}anagedLedgerOffloadBucket") for each in buckets
    ):
        raise _refused("The bucket must be specified for namespace offload.")
    return value


def completed(value: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
    """A policy with defaults, and with what its driver is."""
    return {**DEFAULTS, **value, **driver_kinds(value.get("managedLedgerOffloadDriver"))}


def _refused(reason: str) -> HttpError:
    return HttpError(HTTPStatus.PRECONDITION_FAILED, reason)
