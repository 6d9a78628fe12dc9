"""Where our broker is not (yet) like the recorded one: two lists that are part of the tests.

`NOT_DUE` shrinks: a scenario in it that passes fails the test. `DEVIATIONS` are decided on purpose;
their replaced results are what must come instead, and a scenario that passes without them must not
be listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.integration.transcripts.recording import Scenario

_TRANSACTIONS = "transactions"

NOT_DUE: Mapping[str, str] = {
    "txn-unknown-add-partition": _TRANSACTIONS,
    "txn-unknown-add-subscription": _TRANSACTIONS,
    "txn-unknown-end-txn": _TRANSACTIONS,
    "txn-unknown-end-on-subscription": _TRANSACTIONS,
    "txn-coordinators": _TRANSACTIONS,
    "txn-without-ttl": _TRANSACTIONS,
    "txn-add-after-end": _TRANSACTIONS,
    "txn-commit-messages": _TRANSACTIONS,
    "txn-last-id-after-abort": _TRANSACTIONS,
    "txn-send-without-adding-partition": _TRANSACTIONS,
    "txn-send-after-end": _TRANSACTIONS,
    "txn-timeout": _TRANSACTIONS,
    "txn-ack-commit": _TRANSACTIONS,
    "txn-ack-abort": _TRANSACTIONS,
    "txn-ack-conflict": _TRANSACTIONS,
    "txn-ack-cumulative": _TRANSACTIONS,
    "txn-ack-batch-indexes": _TRANSACTIONS,
    "txn-ack-without-request-id": _TRANSACTIONS,
    "txn-ack-of-unknown-transaction": _TRANSACTIONS,
    "txn-end-on-partition-directly": _TRANSACTIONS,
    "txn-batch-commit": _TRANSACTIONS,
    "txn-batch-abort": _TRANSACTIONS,
    "txn-properties-kept": _TRANSACTIONS,
    "txn-key-shared-ack-abort": _TRANSACTIONS,
    "txn-key-shared-messages": _TRANSACTIONS,
    "txn-dedup-repeated": _TRANSACTIONS,
    "txn-dedup-last-sequence-id": _TRANSACTIONS,
    "txn-abort-redelivery-order": _TRANSACTIONS,
    "txn-abort-exclusive": _TRANSACTIONS,
    "txn-abort-cumulative": _TRANSACTIONS,
    "txn-abort-no-permits": _TRANSACTIONS,
    "txn-negative-ack-while-pending": _TRANSACTIONS,
    "txn-three-open": _TRANSACTIONS,
    "txn-oldest-ends-first": _TRANSACTIONS,
    "txn-end-from-two-coordinators": _TRANSACTIONS,
    "txn-two-topics": _TRANSACTIONS,
    "txn-last-id-first-message-open": _TRANSACTIONS,
    "txn-subscribe-latest-while-open": _TRANSACTIONS,
    "txn-reader-while-open": _TRANSACTIONS,
    "txn-seek-over-aborted": _TRANSACTIONS,
    "txn-commands-after-timeout": _TRANSACTIONS,
    "txn-ttl-zero": _TRANSACTIONS,
    "txn-timeout-frees-committed-ones": _TRANSACTIONS,
    "txn-coordinator-unloaded": _TRANSACTIONS,
    "txn-coordinator-unloaded-timeout": _TRANSACTIONS,
    "txn-topic-unloaded-open": _TRANSACTIONS,
    "txn-topic-unloaded-pending-ack": _TRANSACTIONS,
    "txn-topic-unloaded-pending-ack-commit": _TRANSACTIONS,
    "txn-topic-deleted-while-open": _TRANSACTIONS,
    "txn-unsubscribed-while-open": _TRANSACTIONS,
    "txn-send-of-unknown-transaction": _TRANSACTIONS,
    "txn-ids-in-metadata-only": _TRANSACTIONS,
    "txn-low-water-mark": _TRANSACTIONS,
    "txn-low-water-mark-of-acks": _TRANSACTIONS,
    "txn-ack-after-end": _TRANSACTIONS,
    "txn-add-missing-topic-and-subscription": _TRANSACTIONS,
    "txn-individual-then-cumulative-abort": _TRANSACTIONS,
    "txn-cumulative-then-individual": _TRANSACTIONS,
    "txn-cumulative-then-plain-cumulative": _TRANSACTIONS,
    "txn-plain-ack-of-a-pending-one": _TRANSACTIONS,
    "txn-one-conflicting-id-of-several": _TRANSACTIONS,
    "txn-ack-beyond-the-end": _TRANSACTIONS,
    "txn-batch-index-then-whole": _TRANSACTIONS,
    "txn-batch-by-halves": _TRANSACTIONS,
    "txn-batch-index-already-acked": _TRANSACTIONS,
    "txn-batch-cumulative-index": _TRANSACTIONS,
    "txn-seek-while-pending": _TRANSACTIONS,
    "txn-skip-all-while-pending": _TRANSACTIONS,
    "txn-delayed-commit": _TRANSACTIONS,
    "txn-delayed-abort": _TRANSACTIONS,
    "txn-np-send": _TRANSACTIONS,
    "txn-np-commit": _TRANSACTIONS,
    "txn-partitions": _TRANSACTIONS,
    "txn-partitioned-base-name": _TRANSACTIONS,
    "txn-close-producer-while-open": _TRANSACTIONS,
}


@dataclass(frozen=True, slots=True)
class Deviation:
    """How a scenario ends here.

    Attributes:
        reason: Why ours is the better answer.
        results: What has to come instead, by the index of its step.
        steps: How many steps are played; those after them make no sense any more. None: all.
        settings: Settings of broker.conf that the scenario needs here beside its own.
    """

    reason: str
    results: Mapping[int, Any] = field(default_factory=dict)  # Any: results are JSON
    steps: int | None = None
    settings: tuple[str, ...] = ()

    def apply(self, scenario: Scenario) -> Scenario:
        """The scenario as it has to go here."""
        steps = []
        for index, step in enumerate(scenario.steps[: self.steps]):
            changed = dict(step)
            if index in self.results:
                changed["result"] = self.results[index]
            steps.append(changed)
        return Scenario(
            name=scenario.name,
            group=scenario.group,
            about=scenario.about,
            settings=scenario.settings,
            steps=tuple(steps),
            accident=scenario.accident,
        )


def _answer(type_name: str, **fields: Any) -> Any:  # Any: fields as a transcript has them
    return {"commands": [{"type": type_name, "fields": fields}], "closed": False}


_RING = ("activeConsumerFailoverConsistentHashing=true",)
_RING_REASON = (
    "the setting says whether a ring chooses, and is false by default: then the first by priority "
    "and name is active, so that who has several consumers knows which; replayed with it"
)
_ERROR_REASON = "an exception in a handler becomes an ERROR; the connection serves on"

DEVIATIONS: Mapping[str, Deviation] = {
    "failover-ring-a": Deviation(_RING_REASON, settings=_RING),
    "failover-ring-d": Deviation(_RING_REASON, settings=_RING),
    "topics-of-namespace-bad-name": Deviation(
        _ERROR_REASON,
        results={2: _answer("ERROR", request_id=1, error="InvalidTopicName", message="")},
        steps=3,
    ),
    "watch-topic-list-bad-namespace": Deviation(
        _ERROR_REASON,
        results={2: _answer("ERROR", request_id=1, error="InvalidTopicName", message="")},
        steps=3,
    ),
    "consumer-stats-unknown-consumer": Deviation(
        "ConsumerNotFound is what the protocol has for it; the connection serves on",
        results={
            4: _answer(
                "CONSUMER_STATS_RESPONSE",
                request_id=2,
                error_code="ConsumerNotFound",
                error_message="",
            )
        },
        steps=5,
    ),
    "get-schema-short-version": Deviation(
        _ERROR_REASON,
        results={
            4: _answer(
                "GET_SCHEMA_RESPONSE",
                request_id=2,
                error_code="IncompatibleSchema",
                error_message="",
            )
        },
        steps=5,
    ),
    "seek-failover-inactive": Deviation(
        "a consumer that becomes active because the seek closed the active one is told so",
        results={
            7: {
                "commands": [
                    {
                        "type": "CLOSE_CONSUMER",
                        "fields": {"consumer_id": 1, "request_id": -1},
                    },
                    {
                        "type": "ACTIVE_CONSUMER_CHANGE",
                        "fields": {"consumer_id": 2, "is_active": True},
                    },
                    {"type": "SUCCESS", "fields": {"request_id": 3}},
                ],
                "closed": False,
            }
        },
    ),
    "flow-before-subscribe-success": Deviation(
        "permits that come early are kept; losing them is a race of the original",
        results={
            7: {
                "commands": [
                    {
                        "type": "MESSAGE",
                        "fields": {
                            "consumer_id": 1,
                            "message_id": {"ledgerId": "L1", "entryId": 0, "partition": -1},
                        },
                        "checksum": "valid",
                        "metadata": {
                            "producer_name": "wire",
                            "sequence_id": 0,
                            "publish_time": 1700000000000,
                        },
                        "body": "text:m0",
                    }
                ],
                "closed": False,
            }
        },
    ),
}
