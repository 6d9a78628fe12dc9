"""Base of the sources that the connector is measured against: its plans with another reader."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import StructType

from pulsar_py.spark.source import PulsarBatchReader, PulsarDataSource


class OtherReader(PulsarDataSource):
    """Plans as the connector does; `piece_reader` reads."""

    piece_reader: ClassVar[type[PulsarBatchReader]]

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`."""
        reader = super().reader(schema)
        assert isinstance(reader, PulsarBatchReader)
        return self.piece_reader(reader._task)  # noqa: SLF001 - the same, in another dress
