"""Managed ledgers and their cursors: appending, reading, acknowledging and trimming entries.

In: entries as bytes, acknowledged positions, a ledger store and a metadata store. Out: positions,
a group at a time when they are durable, and runs of entries. `log` has the list of ledgers, the
appender and the caches, `cursors` the cursors; `opener` opens both.

Third-party packages it may import: protobuf, msgspec, pyroaring, sortedcontainers.
"""
