"""Writers of the connector: what Spark calls on the driver and in tasks (edge).

Source: spec sections 5.2 and 8.5.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter
from pyspark.sql.types import StructType


def make_batch_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool = False
) -> DataSourceArrowWriter:
    """The writer of `df.write.mode("append")`; asks the cluster what it needs to know.

    Raises:
        ConfigurationError: An option or column makes no sense, or cannot be guaranteed.
        ServiceError, ClientError: The topic can't be written.
    """
    raise NotImplementedError


def make_stream_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool = False
) -> DataSourceStreamArrowWriter:
    """The writer of one micro-batch; raises as `make_batch_writer`."""
    raise NotImplementedError
