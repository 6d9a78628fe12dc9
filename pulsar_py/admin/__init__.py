"""The administration of a broker by HTTP: a small server, a router, and resources.

May import: h11.
"""
