"""Handlers of a connection's commands, and what they know of the connection.

In: commands that `connection` has read, one call of a handler each (`command_table`), and SENDs by
the run (`plain_sends`). Out: calls of topics, producers, consumers, namespaces and schemas; answers
go back through the `CommandConnection` that a handler is given.
"""
