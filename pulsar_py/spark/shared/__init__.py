"""Options, the clients of a process, offsets and logs, which every room of the connector uses.

In: the texts of options that Spark hands over. Out: `ReadOptions` and `WriteOptions`, the event
loop of this process with its clients (`runtime`), offsets as users and checkpoints have them. It
knows nothing of rows, plans or payloads.

Third-party packages it may import: uvloop.
"""
