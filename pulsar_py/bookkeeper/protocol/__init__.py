"""Bytes of BookKeeper's protocols: frames, entries as bookies store them, and their digests.

All pure. Comes in: values and bytes. Goes out: bytes and values, or the reason why they are wrong.
"""
