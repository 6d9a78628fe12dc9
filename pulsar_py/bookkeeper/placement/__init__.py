"""Chooses bookies: by racks and regions, isolation groups, and how many there are.

All pure. Comes in: who is there, what a ledger asks for. Goes out: an ensemble, or what is missing.
"""
