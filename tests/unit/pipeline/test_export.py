"""The default checkpoint of an export; tests/spark/test_pipelines.py exports."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

from pulsar_py.pipeline.export import default_checkpoint
from pulsar_py.pipeline.tables.places import Target


def test_the_checkpoint_lies_in_the_table_where_readers_do_not_look() -> None:
    assert default_checkpoint(Target.parse("delta:/a/b")) == "/a/b/_checkpoint"
