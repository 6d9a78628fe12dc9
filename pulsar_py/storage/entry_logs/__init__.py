"""Entry logs: where entries lie after a flush, how they are read, and what is rewritten.

In: sealed generations of the write cache, and large groups of the journal. Out: runs of entries, as
they were stored.

`ledger_storage` is the way in: it writes logs and index tables and reads entries through them.
"""
