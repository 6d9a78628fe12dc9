"""Managed ledgers and their cursors: positions, acknowledgements, trimming; never the wire.

Third-party packages it may import: protobuf, pyroaring, sortedcontainers.
"""
