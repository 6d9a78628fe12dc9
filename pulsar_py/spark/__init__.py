"""The connector for Spark: `spark.read.format("pulsar")`, batch and streaming, read and write.

Nothing of it is loaded by `import pulsar_py`. `options`, `offsets` and `planning` are pure and need
neither Spark nor Arrow.

Third-party packages it may import: pyspark, pyarrow, fastavro, protobuf.
"""
