"""Pulsar's binary protocol: framing, commands, payloads, batches, compression, connection states.

In: bytes as a socket delivered them, or values to send. Out: commands and entries, or frames to
write; errors are `ProtocolError`s. Pure throughout: no sockets, no topics, no clock. Third-party
packages it may import: protobuf, msgspec, and when a payload needs them zstandard and cramjam.
"""
