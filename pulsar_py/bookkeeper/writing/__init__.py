"""Writes ledgers: sends entries, replaces failed bookies, confirms, and recovers open ledgers.

Comes in: entries that are lent until they are confirmed. Goes out: confirmations in the order of
entries, or the error that ended the ledger.
"""
