"""Inspection of the files of a stopped storage: finds damage, prints records, rebuilds files."""
