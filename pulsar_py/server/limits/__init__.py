"""Limits of topics and connections: publishes in flight, backlog quotas, checks of messages.

In: `TopicSettings` with sizes, ages and messages. Out: whether a quota is exceeded, a message is
refused, or reading a socket has to pause. Topics, producers, upkeep and connections act on it.
"""
