"""The embedded ledger store: ledgers of entries on a disk, in journal, entry logs and index.

Third-party packages it may import: protobuf, crc32c, pyroaring.
"""
