"""Entry logs: where entries lie after a flush, how they are read, and what is rewritten.

`ledger_storage` is the way in: it writes logs and index tables and reads entries through them.
"""
