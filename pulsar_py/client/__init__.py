"""The asyncio client: producers, consumers, readers.

Third-party packages it may import: protobuf, sortedcontainers, cryptography.
"""
