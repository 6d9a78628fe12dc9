"""Records of ledgers in the metadata store: their format, their paths, and changes by version.

Comes in: a `MetadataStore`, ledger ids. Goes out: `LedgerMetadata` values of every version that
readers meet.
"""
