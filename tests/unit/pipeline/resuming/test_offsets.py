"""Offsets of topics in checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.resuming.offsets import checkpoint_offsets, offsets_in


def checkpoint(directory: Path, offsets: str) -> Path:
    for name in ("commits", "offsets"):
        (directory / name).mkdir()
        for batch in range(2):
            (directory / name / str(batch)).write_text("v1\n{}")
    (directory / "commits" / ".1.crc").touch()
    (directory / "offsets" / "1").write_text(offsets)
    (directory / "offsets" / "2").write_text("v1\n{}\nnot committed")
    return directory


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no checkpoint"):
        checkpoint_offsets(tmp_path)
    with pytest.raises(ConfigurationError, match="reads no topics"):
        checkpoint_offsets(checkpoint(tmp_path, 'v1\n{}\n{"files":1}\n'))


def test_sources_that_are_no_topics_are_left_out() -> None:
    assert offsets_in('v1\n{}\n-\n{"a":"b"}\n5') == []
