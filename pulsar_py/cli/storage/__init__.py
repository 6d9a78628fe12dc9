"""The commands of `pulsar-py storage`: they inspect, repair, back up and restore a broker's data.

In: a data directory and options of the commands. Out: reports as text and JSON on standard output,
a repaired directory, and an exit code.

Third-party packages it may import: click, protobuf, rich.
"""
