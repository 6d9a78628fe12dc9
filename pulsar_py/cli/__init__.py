"""The command line of `pulsar-py`. A subcommand's work is imported when it runs.

Third-party packages it may import: click, protobuf, rich, uvloop.
"""
