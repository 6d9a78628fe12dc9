"""The commands of `pulsar-py pipeline`, which move data between topics and tables with Spark.

In: options of the commands, secrets from the environment and files. Out: settings of the pipelines
of `pulsar_py.pipeline`, which are run, results on standard output, and an exit code.

Third-party packages it may import: click.
"""
