"""Reads ledgers: asks bookies, decides when enough have answered, fetches ahead.

Comes in: ranges of entries. Goes out: entries whose digests were checked.
"""
