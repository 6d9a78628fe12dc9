"""Connections of clients: bytes of sockets in, commands to their handlers, frames back.

In: bytes of sockets, cut into commands by `wire`. Out: calls of `handlers`; what these, producers
and consumers send goes back as frames. What a connection holds back, and why, is here.
"""
