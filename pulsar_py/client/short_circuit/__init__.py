"""Short-circuit reads: entries that a broker on this machine stores, read from its files.

In: the path of the broker's socket, and a range of a ledger. Out: runs of messages as a consumer
would give them, up to the first entry that has to come from the broker.

Third-party packages it may import: protobuf.
"""
