"""Cursors: what a subscription has read and acknowledged, in memory and stored.

In: reads, acknowledgements and resets of a `ManagedCursor`. Out: runs of entries from `log`; the
state, written to a cursor ledger or a metadata record, at most once a second a cursor.

Third-party packages it may import: protobuf, pyroaring, sortedcontainers.
"""
