"""Bytes to commands and back: framing, payloads, batches, compression, connection states.

Pure throughout: no sockets, no topics, no clock. Third-party packages it may import: protobuf, and
when a payload needs them zstandard and cramjam.
"""
