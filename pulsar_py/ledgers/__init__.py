"""The contract of ledger stores: their interface, ledger ids, labels and errors.

Every engine implements it (`storage` in this process, Apache BookKeeper's client beside it), and
everything above a ledger is written against it alone. In: entries as bytes. Out: their ids,
confirmations a group at a time, entries in runs, and errors.

Third-party packages it may import: msgspec.
"""
