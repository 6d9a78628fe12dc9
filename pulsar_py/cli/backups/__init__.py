"""Copies of a broker's data, for `pulsar-py storage backup` and `restore`; a bar for long work.

Third-party packages it may import: rich.
"""
