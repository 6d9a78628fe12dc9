"""The command `pulsar-py`; every command imports what it needs inside itself.

May import: click, rich, uvloop.
"""
