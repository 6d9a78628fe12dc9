"""Parts that all ledgers of one store share: settings, the bound on memory, the choice of bookies.

Comes in: bookies, records and settings. Goes out: what `reading` and `writing` work with.
"""
