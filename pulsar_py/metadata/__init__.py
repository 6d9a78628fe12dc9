"""The metadata store: versioned keys with watches and sessions, and the typed objects kept in them.

Third-party packages it may import: msgspec.
"""
