"""Inspection of a storage that no broker serves: finds damage, prints records, rebuilds files."""
