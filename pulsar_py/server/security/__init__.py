"""Authentication of clients, TLS, and the table of actions with the right that each needs.

In: credentials and certificates that connections and REST received. Out: a role, and whether it may
do an action. It imports `metadata` and `common` alone. Third-party packages it may import:
cryptography, PyJWT, libpass, bcrypt, msgspec.
"""
