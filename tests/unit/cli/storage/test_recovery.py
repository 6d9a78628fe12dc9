"""What the recovery decides; tests/integration has the whole of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.cli.storage.jobs import Inspection
from pulsar_py.cli.storage.recovery import LOST_MARKER, filler, nameless_ledgers, new_side_folder
from pulsar_py.common.errors import ConfigurationError, CorruptDataError
from pulsar_py.managed_ledger.cursors.format import decode_position_info
from pulsar_py.managed_ledger.inspection import Topics
from pulsar_py.metadata.inspection import MetadataContents
from pulsar_py.storage.inspection.survey import Survey, SurveyedLedger
from pulsar_py.storage.shared.ledger_record import LedgerRecord
from pulsar_py.wire.payload import ChecksumStatus, parse_metadata, verify_checksum


def test_a_filler_is_an_entry_of_the_broker_and_no_state_of_a_cursor() -> None:
    assert parse_metadata(filler()).marker_type == LOST_MARKER
    assert verify_checksum(filler()) is ChecksumStatus.VALID
    with pytest.raises(CorruptDataError):
        decode_position_info(filler())


def test_ledgers_that_lost_their_topic_are_named_with_what_they_hold() -> None:
    ends = {2: 9, 4: 99, 5: -1, 6: 0}
    survey = Survey(
        ledgers={key: SurveyedLedger(LedgerRecord(last_entry_id=end)) for key, end in ends.items()}
    )
    found = Inspection(survey, MetadataContents(), Topics(), expected={2: 9})
    text = "no readable key refers to it, and a broker will delete it"
    assert list(nameless_ledgers(found)) == [
        f"lost: the topic of ledger 4 with 100 entries: {text}",
        f"lost: the topic of ledger 6 with 1 entries: {text}",
    ]


def test_each_recovery_has_a_folder_of_its_own(tmp_path: Path) -> None:
    assert new_side_folder(tmp_path, None) == tmp_path / "recovered-1"
    (tmp_path / "recovered-1").mkdir()
    assert new_side_folder(tmp_path, None) == tmp_path / "recovered-2"
    assert new_side_folder(tmp_path, tmp_path / "mine") == tmp_path / "mine"
    with pytest.raises(ConfigurationError, match="exists already"):
        new_side_folder(tmp_path, tmp_path / "recovered-1")
