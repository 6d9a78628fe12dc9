"""Running a pipeline: Spark's session, jobs and queries, stopping, restarts, progress.

In: the work, as a function of a session; a `Watch` with the request to stop and a reporter. Out:
the work's result or an exit code, steps of progress on standard error, and reasons of failures in
one sentence. Nothing here knows topics or tables.

Third-party packages it may import: pyspark, rich.
"""
