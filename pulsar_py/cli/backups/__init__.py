"""Copies of a broker's data, for `pulsar-py storage backup` and `restore`; a bar for long work.

In: options of the two commands. Out: files of a backup or of a data directory, and an exit code.

Third-party packages it may import: rich.
"""
