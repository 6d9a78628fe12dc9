"""Reads the offsets of topics from the checkpoint of a streaming query (edge)."""

from __future__ import annotations

import json
from pathlib import Path

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.spark.shared.offsets import StreamOffset


def checkpoint_offsets(checkpoint: Path) -> list[StreamOffset]:
    """The end offsets of a query's newest committed batch, one for each source of topics.

    Raises:
        ConfigurationError: The checkpoint has no committed batch, or no source that reads topics.
    """
    committed = [int(each.name) for each in (checkpoint / "commits").glob("*") if _is_batch(each)]
    if not committed:
        raise ConfigurationError(
            f"{checkpoint}: it is no checkpoint of a query with a committed batch"
        )
    text = (checkpoint / "offsets" / str(max(committed))).read_text()
    found = offsets_in(text)
    if not found:
        raise ConfigurationError(f"{checkpoint}: its query reads no topics; expected one that does")
    return found


def _is_batch(path: Path) -> bool:
    return path.name.isdigit()


def offsets_in(text: str) -> list[StreamOffset]:
    """The offsets of topics in a file of Spark's offset log.

    The first line is a version, the second metadata; each further one is the offset of a source,
    of whatever format that source has.

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
