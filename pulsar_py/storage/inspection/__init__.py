"""Inspection of the files of a stopped storage: finds damage, prints records, rebuilds files.

In: the directory of a storage that nobody has open. Out: findings, entries that can be read, lines
of text, and files that replace damaged ones.
"""
