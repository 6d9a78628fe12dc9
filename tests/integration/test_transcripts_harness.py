"""The judge judged: it sends what was sent, and notices what differs."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSendReceipt, CommandSuccess
from tests.integration.transcripts.frames import Received, build_payload
from tests.integration.transcripts.matching import Matcher
from tests.integration.transcripts.recording import load_recording
from tests.integration.transcripts.values import Names

RECORDING = load_recording()


def recorded_payloads() -> list[dict[str, Any]]:
    """Every SEND whose bytes do not depend on the clock or on ids."""
    commands = [
        command
        for scenario in RECORDING.scenarios.values()
        for step in scenario.steps
        for command in step.get("send_together", [step])
    ]
    return [each for each in commands if "payload" in each and "headers_and_payload" in each]


def test_payloads_are_built_as_they_were_recorded() -> None:
    payloads = recorded_payloads()
    assert len(payloads) > 500
    for command in payloads:
        built = build_payload(command["payload"], command["fields"], Names())
        assert built.hex() == command["headers_and_payload"]


def receipt(producer_id: int, ledger_id: int, entry_id: int) -> Received:
    """A SEND_RECEIPT that came."""
    command = BaseCommand(type=BaseCommand.SEND_RECEIPT)
    command.send_receipt.CopyFrom(
        CommandSendReceipt(
            producer_id=producer_id,
            sequence_id=0,
            message_id={"ledgerId": ledger_id, "entryId": entry_id},
        )
    )
    return Received("SEND_RECEIPT", command)


def success(request_id: int) -> Received:
    """A SUCCESS that came."""
    command = BaseCommand(type=BaseCommand.SUCCESS, success=CommandSuccess(request_id=request_id))
    return Received("SUCCESS", command)


def written(producer_id: int, ledger: str, entry_id: int, **fields: Any) -> dict[str, Any]:
    """A SEND_RECEIPT as a transcript has it."""
    message_id = {"ledgerId": ledger, "entryId": entry_id}
    own = {"producer_id": producer_id, "sequence_id": 0, "message_id": message_id}
    return {"type": "SEND_RECEIPT", "fields": own | fields}


SUCCESS = {"type": "SUCCESS", "fields": {"request_id": 1}}


@pytest.mark.parametrize(
    ("expected", "came"),
    [
        ([written(1, "L1", 0)], []),
        ([], [receipt(1, 5, 0)]),
        ([written(1, "L1", 0)], [receipt(1, 5, 1)]),
        ([written(1, "L1", 0)], [receipt(2, 5, 0)]),
        ([written(1, "L1", 0), written(1, "L1", 1)], [receipt(1, 5, 0), receipt(1, 6, 1)]),
        ([written(1, "L1", 0), written(1, "L2", 0)], [receipt(1, 5, 0), receipt(1, 5, 0)]),
        ([written(1, "L1", 0, highest_sequence_id=7)], [receipt(1, 5, 0)]),
        ([SUCCESS], [receipt(1, 5, 0)]),
        ([SUCCESS], [success(2)]),
    ],
)
def test_differences_are_noticed(expected: list[dict[str, Any]], came: list[Received]) -> None:
    for any_order in (True, False):
        matcher = Matcher(RECORDING, Names())
        assert matcher.compare(expected, came, any_order=any_order)


def test_what_may_differ_may_differ() -> None:
    expected = [written(1, "L1", 0, highest_sequence_id=-1), SUCCESS, written(1, "L1", 1)]
    came = [success(1), receipt(1, 5, 0), receipt(1, 5, 1)]
    matcher = Matcher(RECORDING, Names())
    assert not matcher.compare(expected, came, any_order=True)
    assert Matcher(RECORDING, Names()).compare(expected, came, any_order=False)
