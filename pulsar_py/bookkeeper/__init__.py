"""Apache BookKeeper as the broker's LedgerStore.

`store` keeps the contract of `ledgers.store` on a cluster of bookies. What is pure: `digest`,
`entry_format`, `frames`, `ledger_metadata`, `ledger_paths` and `rack_map` are bytes and names;
`placement`, `isolation` and `ensemble_sizing` choose bookies, `health` knows which to do without,
`write_quorum` and `read_quorum` decide when enough bookies have answered. What awaits and obeys:
`connection` is one TCP connection, `bookies` has one for each bookie and counts
(`bookie_statistics`), `watch` asks whether failing ones are back, `ensembles` brings knowledge and
choice together, `replication` sends entries to an ensemble and repairs it, `writer`, `reader` (with
`fetching` and `ahead_reads`) and `recovery` are what a ledger is used through, `ledger_records`
has the ledgers' metadata.

What comes in: a `MetadataStore` of the cluster that the bookies are registered in, and calls of the
contract. What goes out: frames of BookKeeper's protocol 2, and metadata in its formats.

Third-party packages it may import: protobuf.
"""
