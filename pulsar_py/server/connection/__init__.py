"""Connections of clients: from bytes to commands to handlers, and back.

In: bytes of sockets, cut into commands by `wire`. Out: calls of topics, producers, consumers,
namespaces and schemas; their answers and messages go back as frames. Handlers see their connection
as `CommandConnection`.
"""
