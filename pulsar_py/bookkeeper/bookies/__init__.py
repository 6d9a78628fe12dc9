"""Connections to bookies, the registry of available bookies, and their health.

Comes in: requests for one bookie, news of the registry. Goes out: frames, and answers to whoever
asked. Nothing here knows what a write quorum is.
"""
