"""Entry logs: files of flushed entries, their readers, and the rewriting of mostly deleted ones.

In: sealed generations of the write cache, and large groups of the journal. Out: runs of entries, as
they were stored.

`ledger_storage` is the way in: it writes logs and index tables and reads entries through them.
"""
