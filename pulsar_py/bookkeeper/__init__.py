"""Apache BookKeeper as the broker's LedgerStore.

`store` keeps the contract of `ledgers.store` on a cluster of bookies. Its rooms, each using those
before it: `protocol` and `metadata` are bytes and names, `placement` chooses bookies, `bookies` has
a connection to each, `cluster` brings knowledge and choice together, `reading` and `writing` are
what a ledger is used through. `watch` asks whether failing bookies are back, `service_uri` reads
where the cluster's metadata is.

What comes in: a `MetadataStore` of the cluster that the bookies are registered in, and calls of the
contract. What goes out: frames of BookKeeper's protocol 2, and of 3 where 2 lacks a
request, and metadata in its formats.

Third-party packages it may import: msgspec, protobuf.
"""
