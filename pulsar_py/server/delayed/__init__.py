"""Delayed index: remembers in buckets on disk which entries of a subscription are not due yet.

In: the times of entries that a dispatcher holds back, a cursor, and the ledger store. Out: a
`DelayedIndex`, which a subscription owns, with the tracker that its dispatcher asks.
`bucket_format` draws the bytes, `bucket_tracker` decides, `bucket_ledgers` reads and writes.
"""
