"""Ready pipelines between topics and lakes: `pulsar-py pipeline ...`, each a function, too.

    from pulsar_py.pipeline.export import ExportSettings, export
    export(session, ExportSettings(source=TopicRange(...), lake=LakeSettings(...), streaming=...))

`settings`, `submit`, `lags`, `tables` and `svg` are pure. Spark is imported when a pipeline runs,
`deltalake` when a Delta table is touched; nothing here is loaded by `import pulsar_py`.

Third-party packages it may import: pyspark, pyarrow, deltalake, rich.
"""
