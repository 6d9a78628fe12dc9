"""Cursors: the positions and acknowledgements of subscriptions, in memory and stored.

In: reads, acknowledgements and resets of a `ManagedCursor`. Out: runs of entries from `log`; the
state, written to a cursor ledger or a metadata record, at most once a second for each cursor.

Third-party packages it may import: protobuf, msgspec, pyroaring, sortedcontainers.
"""
