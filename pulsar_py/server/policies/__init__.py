"""Effective settings of topics, from broker configuration and policies.

In: broker configuration as plain values, policies of namespaces and topics as `metadata` stores
them. Out: `TopicSettings`, one immutable value a topic, and whether a missing topic is created on
use. All of it is pure; the registry in `topics` reads policies and passes the values on.
"""
