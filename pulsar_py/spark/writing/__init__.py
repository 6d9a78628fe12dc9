"""Tasks of a write: rows to topic partitions, at least once or exactly once.

In: Arrow record batches, and what the driver planned. Out: messages sent and confirmed, with counts
of written and skipped rows. It knows nothing of planning and reading.

Third-party packages it may import: pyarrow, pyspark.
"""
