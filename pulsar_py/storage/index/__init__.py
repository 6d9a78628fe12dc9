"""The index: finds the runs of a ledger's entries, and the ledgers' records, in sorted tables.

Comes in: positions in entry logs, at a flush. Goes out: where a run lies, a page at a time.
"""
