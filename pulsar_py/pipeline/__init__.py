"""Ready pipelines between topics and lakes: `pulsar-py pipeline ...`, each a function, too.

    from pulsar_py.pipeline.export import ExportSettings, export
    export(session, ExportSettings(source=TopicRange(...), lake=LakeSettings(...), streaming=...))

In: settings, and data frames of topics or tables. Out: data frames to tables or topics, figures,
and what `Watch` reports on the way.

The modules here are the pipelines (`export`, `backfill`, `aggregate`, `copy`, `compact`, `lag`,
`replay`, `report`), what they share (`topics` and `lake` read and write data frames), and `jobs`,
which checks a pipeline before Spark starts. The rooms below hold the parts; each may import those
before it in this order, save those that ARCHITECTURE.md leaves out, and none imports a module that
lies here:

    settings     settings that users give: cluster, topics, columns, times, sizes, secrets
    running      Spark sessions, jobs, queries, restarts, progress
    tables       table directories: files, commits, schemas, the two logs
    resuming     checks of a repeated run, by checkpoints and notes
    measuring    lags, ages and traffic, as numbers and as a page

Importing a module here loads no Spark: it is imported when a pipeline runs, and `deltalake` when a
Delta table is opened.

Third-party packages it may import: pyspark, pyarrow, deltalake, rich.
"""
