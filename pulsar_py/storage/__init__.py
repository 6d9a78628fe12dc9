"""Ledgers of entries on a disk: journal, entry logs, index; knows nothing of messages.

Third-party packages it may import: protobuf, crc32c, pyroaring.
"""
