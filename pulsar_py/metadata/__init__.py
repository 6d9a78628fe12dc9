"""Versioned keys with watches and leases, and the typed objects kept in them.

Third-party packages it may import: none.
"""
