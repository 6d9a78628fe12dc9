"""Tables: directories of Parquet files with a log that says which files count.

In: data frames that are to be written, and commits. Out: files in their places, lists of the files
that count, or a refusal that names the column or the other writer. `table` has the interface;
`manifest` and `delta` are the two logs; `staging` and `attempts` write files, and delete what
failed attempts leave.

Third-party packages it may import: pyspark, pyarrow, deltalake.
"""

from pulsar_py.pipeline.tables.places import Target

__all__ = ["Target"]
