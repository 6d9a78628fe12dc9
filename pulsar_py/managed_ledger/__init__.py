"""Managed ledgers and their cursors: appending, reading, acknowledging and trimming entries.

Third-party packages it may import: protobuf, msgspec, pyroaring, sortedcontainers.
"""
