"""Addresses and credentials of commands: from options, environment, `client.conf`, contexts.

In: what stands on a command line. Out: `Connection`, of which clients are made.
"""
