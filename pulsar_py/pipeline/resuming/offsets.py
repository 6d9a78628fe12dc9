"""The offsets of topics in a stream's checkpoint (edge)."""

from __future__ import annotations

import json
from pathlib import Path

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.spark.offsets import StreamOffset


def checkpoint_offsets(checkpoint: Path) -> list[StreamOffset]:
    """Up to where the newest committed batch of a query has read; one for each topic source.

    Raises:
        ConfigurationError: There is no such batch, or none of its sources reads topics.
    """
    committed = [int(each.name) for each in (checkpoint / "commits").glob("*") if _is_batch(each)]
    if not committed:
        raise ConfigurationError(f"{checkpoint}: no checkpoint with a committed batch")
    text = (checkpoint / "offsets" / str(max(committed))).read_text()
    found = offsets_in(text)
    if not found:
        raise ConfigurationError(f"{checkpoint}: its query reads no topics")
    return found


def _is_batch(path: Path) -> bool:
    return path.name.isdigit()


def offsets_in(text: str) -> list[StreamOffset]:
    """The offsets of topics in a file of Spark's offset log: a version, metadata, then sources.

    Source: OffsetSeqLog in Spark.
    """
    found = []
    for line in text.splitlines()[2:]:
        try:
            parsed = json.loads(line)
        except ValueError:
            continue
        if isinstance(parsed, dict) and "~v" in parsed:
            found.append(StreamOffset.from_json(parsed))
    return found
