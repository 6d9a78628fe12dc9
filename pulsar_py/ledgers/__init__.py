"""The contract of ledger stores: what a ledger is, who may write it, how stores say no.

Every engine implements it (`storage` in this process, Apache BookKeeper's client beside it), and
everything above a ledger is written against it alone. In come entries as bytes; out go ids,
confirmations a group at a time, and errors.

Third-party packages it may import: none.
"""
