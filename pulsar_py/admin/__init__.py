"""The administration of a broker by HTTP: a small server, a router, and resources.

Third-party packages it may import: h11.
"""
