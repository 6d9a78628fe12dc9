"""Connections of clients: parse bytes into commands, call their handlers, write the answers.

In: bytes of sockets, cut into commands by `wire`. Out: calls of topics, producers, consumers,
namespaces and schemas; their answers and messages go back as frames. Handlers see their connection
as `CommandConnection`.
"""
