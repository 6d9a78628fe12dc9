"""The log of one managed ledger: its list of ledgers, appending to the last one, reading all.

In: entries to append, positions to read from. Out: positions, runs of entries, and the ledger list
in the metadata store. It knows nothing of cursors.

Third-party packages it may import: cramjam, msgspec, protobuf, sortedcontainers,
zstandard.
"""
