"""The command line of `pulsar-py`. A subcommand's work is imported when it runs.

In: words and options of a command line, environment variables, files of settings. Out: a running
broker, calls of a cluster, text and JSON on standard output, and an exit code. The modules here
declare the subcommands; those that end in `_jobs` do the work of the one that they are named after.

Third-party packages it may import: click, msgspec, protobuf, rich, uvloop.
"""
