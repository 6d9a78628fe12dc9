"""The connector for Spark: `spark.read.format("pulsar")`, batch and streaming, read and write.

Nothing of it is loaded by `import pulsar_py`. What is marked pure needs no Spark; only `source` and
`sink`, which are loaded by Spark itself, do.

Third-party packages it may import: pyspark, pyarrow, fastavro, protobuf, uvloop.
"""

from pulsar_py.spark.shortcuts import read_topic, register, write_stream, write_topic

__all__ = ["read_topic", "register", "write_stream", "write_topic"]
