"""The connector for Spark: `spark.read.format("pulsar")`, batch and streaming, read and write.

In: Spark's calls of `source` and `sink`, or a user's of `shortcuts`. Out: record batches to Spark,
messages to topics. `checks` asks a cluster before Spark is started. The rooms below: `shared`,
`avro`, `values`, `planning`, `reading`, `writing`.

Importing it has Spark's Python workers run this program's interpreter (`shared.worker_python`), so
import it before the session is made. `import pulsar_py` loads nothing of it. Modules marked pure
need no Spark; only `source` and `sink`, which Spark itself loads, import it.

Third-party packages it may import: pyspark, pyarrow, fastavro, protobuf, uvloop.
"""

from pulsar_py.spark.shortcuts import read_topic, register, write_stream, write_topic

__all__ = ["read_topic", "register", "write_stream", "write_topic"]
